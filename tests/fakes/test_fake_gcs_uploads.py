"""Uploads to the fake GCS: in chunks, interrupted, resumed, cancelled, verified at the end."""

from __future__ import annotations

import base64
import json
import os
import socket
from urllib.parse import urlsplit

import object_stores
import pytest
from json_api import JsonApi, reason

BLOCK = 256 * 1024
OF_THE_FAKE = pytest.mark.skipif(bool(object_stores.REAL_GCS_PREFIX), reason="it talks to a server without TLS")


def session_of(api: JsonApi, name: str, **query: str) -> str:
    return str(api.begin(name, **query).headers["Location"])


def test_an_upload_in_chunks_is_an_object_when_the_last_is_there(api: JsonApi) -> None:
    data, session = os.urandom(2 * BLOCK + 100), session_of(api, "a")
    first = api.chunk(session, f"0-{BLOCK - 1}/*", data[:BLOCK])
    assert (first.status_code, first.headers["Range"]) == (308, f"bytes=0-{BLOCK - 1}")
    assert api.look("a").status_code == 404
    last = api.chunk(session, f"{BLOCK}-{len(data) - 1}/{len(data)}", data[BLOCK:])
    assert (last.status_code, last.json()["size"]) == (200, str(len(data)))
    assert api.read("a").content == data


def test_an_upload_reports_how_many_bytes_it_has(api: JsonApi) -> None:
    session = session_of(api, "a")
    nothing = api.chunk(session, "*/*")
    assert (nothing.status_code, "Range" in nothing.headers) == (308, False)
    api.chunk(session, f"0-{BLOCK - 1}/*", bytes(BLOCK))
    for question in ("*/*", f"*/{3 * BLOCK}"):
        assert api.chunk(session, question).headers["Range"] == f"bytes=0-{BLOCK - 1}"


def test_of_a_chunk_in_the_middle_whole_blocks_are_kept(api: JsonApi) -> None:
    data, session = os.urandom(BLOCK + 1000), session_of(api, "a")
    assert api.chunk(session, f"0-{len(data) - 1}/*", data).headers["Range"] == f"bytes=0-{BLOCK - 1}"
    api.chunk(session, f"{BLOCK}-{len(data) - 1}/{len(data)}", data[BLOCK:])
    assert api.read("a").content == data


def test_bytes_that_came_before_are_ignored_and_a_gap_is_refused(api: JsonApi) -> None:
    data, session = os.urandom(2 * BLOCK), session_of(api, "a")
    assert api.chunk(session, f"{BLOCK}-{2 * BLOCK - 1}/{2 * BLOCK}", data[BLOCK:]).status_code >= 400
    api.chunk(session, f"0-{BLOCK - 1}/*", data[:BLOCK])
    assert api.chunk(session, f"0-{2 * BLOCK - 1}/{2 * BLOCK}", data).status_code == 200
    assert api.read("a").content == data


def test_an_upload_ends_without_bytes_once_its_size_is_known(api: JsonApi) -> None:
    session = session_of(api, "a")
    api.chunk(session, f"0-{BLOCK - 1}/*", bytes(BLOCK))
    assert api.chunk(session, f"*/{BLOCK}").json()["size"] == str(BLOCK)
    assert api.chunk(session_of(api, "empty"), "*/0").json()["size"] == "0"


def test_a_complete_upload_reports_so_again(api: JsonApi) -> None:
    """A client that lost the response sends the last chunk again, or queries; the object is not written twice."""
    session = session_of(api, "a", ifGenerationMatch="0")
    done = api.chunk(session, "0-2/3", b"one").json()
    assert api.chunk(session, "0-2/3", b"one").json()["generation"] == done["generation"]
    assert api.chunk(session, "*/3").json()["generation"] == done["generation"]
    assert api.look("a").json()["generation"] == done["generation"]


def test_conditions_of_an_upload_are_checked_when_it_ends(api: JsonApi) -> None:
    session = session_of(api, "a", ifGenerationMatch="0")
    api.chunk(session, f"0-{BLOCK - 1}/*", bytes(BLOCK))
    api.write("a", b"somebody else's")
    late = api.chunk(session, f"{BLOCK}-{BLOCK + 2}/{BLOCK + 3}", b"end")
    assert (late.status_code, reason(late)) == (412, "conditionNotMet")
    assert api.read("a").content == b"somebody else's"


def test_an_upload_replaces_the_generation_that_it_named(api: JsonApi) -> None:
    now = api.write("a", b"one").json()["generation"]
    session = session_of(api, "a", ifGenerationMatch=now)
    assert api.chunk(session, "0-2/3", b"two").status_code == 200
    assert api.chunk(session_of(api, "a", ifGenerationMatch=now), "0-4/5", b"three").status_code == 412
    assert api.read("a").content == b"two"


def test_a_cancelled_upload_leaves_nothing(api: JsonApi) -> None:
    session = session_of(api, "a")
    api.chunk(session, f"0-{BLOCK - 1}/*", bytes(BLOCK))
    assert api.cancel(session).status_code == 499
    assert 400 <= api.chunk(session, "*/*").status_code < 500
    assert api.look("a").status_code == 404


@OF_THE_FAKE
def test_an_upload_whose_connection_broke_resumes_where_it_was(api: JsonApi) -> None:
    data, session = os.urandom(3 * BLOCK), session_of(api, "a")
    address = urlsplit(session)
    with socket.create_connection((address.hostname, address.port)) as connection:
        head = f"PUT {address.path}?{address.query} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n"
        span = f"Content-Range: bytes 0-{len(data) - 1}/{len(data)}\r\n\r\n"
        connection.sendall((head + span).encode() + data[: BLOCK + 5000])
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1000)
    kept = api.chunk(session, f"*/{len(data)}")
    assert (kept.status_code, kept.headers["Range"]) == (308, f"bytes=0-{BLOCK - 1}")
    assert api.chunk(session, f"{BLOCK}-{len(data) - 1}/{len(data)}", data[BLOCK:]).status_code == 200
    assert api.read("a").content == data


@pytest.mark.parametrize("header", ["md5=1B2M2Y8AsgTpgAmY7PhCfg==", "crc32c=AAAAAA=="])
def test_content_that_is_not_what_was_promised_is_refused(api: JsonApi, header: str) -> None:
    assert api.write("a", b"x", headers={"X-Goog-Hash": header}).status_code == 400
    assert api.chunk(session_of(api, "a"), "0-0/1", b"x", headers={"X-Goog-Hash": header}).status_code == 400
    kind, _, digest = header.partition("=")
    fields = {"md5Hash" if kind == "md5" else kind: digest}
    assert api.chunk(api.begin("a", fields).headers["Location"], "0-0/1", b"x").status_code == 400
    assert api.look("a").status_code == 404


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize("data", [b"", b"x", b"x\r", b"x\r\n", b"\n\n", b"--y", bytes(range(256)) * 4000])
def test_a_multipart_upload_has_its_fields_and_its_content(api: JsonApi, newline: str, data: bytes) -> None:
    fields = {"name": api.full("a"), "metadata": {"k": "v"}, "contentType": "text/plain"}
    lines = ["--x", "Content-Type: application/json", "", json.dumps(fields), "--x", "Content-Type: a/b", "", ""]
    body = newline.join(lines).encode() + data + f"{newline}--x--".encode()
    headers = {"Content-Type": 'multipart/related; boundary="x"'}
    params = {"uploadType": "multipart"}
    answer = api.send("POST", f"/upload/storage/v1/b/{api.bucket}/o", params=params, data=body, headers=headers).json()
    assert (answer["metadata"], answer["contentType"], answer["size"]) == ({"k": "v"}, "text/plain", str(len(data)))
    assert api.read("a").content == data


def test_an_upload_needs_a_bucket_and_a_name(api: JsonApi) -> None:
    path = "/upload/storage/v1/b/{}/o"
    assert api.send("POST", path.format(api.bucket), params={"uploadType": "media"}, data=b"x").status_code == 400
    nowhere = path.format(f"no-bucket-{base64.b16encode(os.urandom(8)).decode().lower()}")
    assert api.send("POST", nowhere, params={"uploadType": "media", "name": "a"}, data=b"x").status_code == 404
