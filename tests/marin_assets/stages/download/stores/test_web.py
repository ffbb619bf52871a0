"""Every fault of a server ends with the right bytes, or with one sentence and no file."""

from __future__ import annotations

import gzip
import hashlib
import random
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from crawl_server import CrawlServer

from marin_assets.stages.download.file_lists import DownloadListedConfig, download_listed
from marin_assets.stages.download.files import (
    DownloadFilesConfig,
    SourceError,
    copy_file,
    download_files,
    list_source,
    source_file,
)
from marin_assets.stages.download.stores.access import StoreAccess
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError

CONTENT = random.Random(3).randbytes(200_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PASSING = {
    "cut": "cut",
    "hang_up": "connection",
    "busy": "server_error",
    "forbidden": "forbidden",
    "encoded": "wrong_answer",
    "other_size": "wrong_size",
    "wrong_range": "wrong_range",
    "ignore_range": "range_ignored",
}
"""Fault of the server -> the reason under which it is counted."""


def config(server: CrawlServer, output: Path, path: str = "a.bin", **fields: Any) -> DownloadFilesConfig:
    given = {"access": StoreAccess(range_bytes=65_536, ranges_in_flight=2), **fields}
    return unwrap_versioned_value(DownloadFilesConfig(source=f"{server.url}{path}", output_path=str(output), **given))


def copy(server: CrawlServer, output: Path, **fields: Any) -> dict[str, Any]:
    return download_files(config(server, output, **fields))


def test_every_request_of_a_download_names_the_project_and_the_contact(
    server: CrawlServer, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_CONTACT", "you@example.org")
    server.files = {"a.bin": CONTENT, "list.txt": b"a.bin\n", "SHA256SUMS": f"{SHA256}  a.bin\n".encode()}
    listed = DownloadListedConfig(
        base=server.url,
        list_path=f"{server.url}list.txt",
        checksum_file=f"{server.url}SHA256SUMS",
        output_path=str(output),
    )
    download_listed(unwrap_versioned_value(listed))
    copy(server, output / "copy")
    assert (output / "a.bin").read_bytes() == (output / "copy/a.bin").read_bytes() == CONTENT
    assert {path for _, path, _ in server.requests} == {"a.bin", "list.txt", "SHA256SUMS"}
    [agent] = server.agents
    assert re.fullmatch(r"marin-dagster/[\d.]+ \(you@example\.org\)", agent or "")


@pytest.fixture(autouse=True)
def content(server: CrawlServer) -> None:
    server.files["a.bin"] = CONTENT


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_is_counted_and_the_bytes_are_right(server: CrawlServer, output: Path, fault: str) -> None:
    server.fault("a.bin", "", fault)  # the first request is a HEAD
    assert copy(server, output)[f"retries_{PASSING[fault]}"] == 1
    assert (output / "a.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("fault", ["busy", "hang_up", "forbidden", "limited"])
def test_a_listing_that_fails_is_tried_again(server: CrawlServer, output: Path, fault: str) -> None:
    server.retry_after = "0"
    server.fault("a.bin", fault, fault)
    copy(server, output)
    assert (output / "a.bin").read_bytes() == CONTENT


def test_a_server_that_ignores_ranges_is_read_as_one_stream(server: CrawlServer, output: Path) -> None:
    server.fault("a.bin", "", *["ignore_range"] * 100)
    copy(server, output)
    assert (output / "a.bin").read_bytes() == CONTENT


def test_a_cut_whose_rest_comes_without_its_range_is_no_mixed_file(server: CrawlServer, output: Path) -> None:
    server.fault("a.bin", "", "cut", "ignore_range", "cut", "ignore_range")
    copy(server, output, access=StoreAccess())
    assert (output / "a.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("other_size", "because of 'wrong_size': the server has 200001 bytes, expected 200000 by the listing"),
        ("wrong_range", "because of 'wrong_range': the server sent the range 'bytes "),
        ("busy", "failed 8 times in a row, the last time because of 'server_error': the server answered 503"),
        ("forbidden", "failed 6 times in a row, the last time because of 'forbidden': the server answered 403"),
        ("other_etag", "changed during the copy, from 'etag \"[0-9a-f]{32}\"' to 'etag \"other\"'"),
    ],
)
def test_a_fault_that_stays_is_a_sentence_and_no_file(
    server: CrawlServer, output: Path, fault: str, sentence: str
) -> None:
    server.fault("a.bin", "", *[fault] * 100)
    with pytest.raises(ShardError, match=sentence):
        copy(server, output)
    assert not (output / "a.bin").exists()


def test_a_flipped_bit_is_fetched_once_more_by_its_checksum(server: CrawlServer, output: Path) -> None:
    server.fault("a.bin", "", "flip")
    result = copy(server, output, access=StoreAccess(), expected_sha256={"a.bin": SHA256})
    assert (output / "a.bin").read_bytes() == CONTENT
    assert (result["retries_wrong_checksum"], result["bytes_fetched"]) == (1, 2 * len(CONTENT))


def test_a_bit_that_is_flipped_twice_is_an_error_with_both_values(server: CrawlServer, output: Path) -> None:
    server.fault("a.bin", "", "flip", "flip")
    flipped = hashlib.sha256(bytes([CONTENT[0] ^ 1]) + CONTENT[1:]).hexdigest()
    sentence = f"has the SHA-256 '{flipped}', expected '{SHA256}' by expected_sha256, twice"
    with pytest.raises(ShardError, match=sentence):
        copy(server, output, access=StoreAccess(), expected_sha256={"a.bin": SHA256})
    assert not (output / "a.bin").exists()


@pytest.mark.parametrize("ignores", [False, True])
def test_a_file_that_changes_between_two_ranges_is_one_error(server: CrawlServer, output: Path, ignores: bool) -> None:
    server.ignores_conditions = ignores
    request = config(server, output)
    listed = source_file(request, "a.bin", list_source(request.source)["a.bin"])
    server.files["a.bin"] = CONTENT[::-1]
    with pytest.raises(SourceError, match=r"changed during the copy, from 'etag .* Run the step again when nothing"):
        copy_file(listed)
    assert set(server.conditions) == {listed.mark.removeprefix("etag ")}


def test_a_pinned_file_that_changed_is_an_error(server: CrawlServer, output: Path) -> None:
    server.files["a.bin"] = CONTENT[::-1]
    with pytest.raises(ShardError, match=f"expected '{SHA256}' by expected_sha256, twice"):
        copy(server, output, expected_sha256={"a.bin": SHA256})


def test_a_server_that_refuses_head_is_listed_by_a_range(server: CrawlServer, output: Path) -> None:
    server.refuses_head = True
    server.files["empty.bin"] = b""
    copy(server, output)
    assert (output / "a.bin").read_bytes() == CONTENT
    download_files(config(server, output / "2", "empty.bin"))
    assert (output / "2/empty.bin").read_bytes() == b""


def test_a_file_without_a_length_is_one_stream_that_begins_again(server: CrawlServer, output: Path) -> None:
    server.without_length.add("a.bin")
    server.fault("a.bin", "", "cut")
    result = copy(server, output)
    assert (output / "a.bin").read_bytes() == CONTENT
    assert result["retries_cut"] == 1
    assert result["bytes_fetched"] > len(CONTENT)


def test_a_file_whose_end_nothing_marks_is_refused_unless_its_checksum_is_known(output: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(6):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nhalf of i")

        threading.Thread(target=serve, daemon=True).start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/a.bin"
        plain = DownloadFilesConfig(source=address, output_path=str(output))
        with pytest.raises(ShardError, match="without a length and without chunks, so a cut file would look complete"):
            download_files(unwrap_versioned_value(plain))
        sha256 = hashlib.sha256(b"half of i").hexdigest()
        pinned = DownloadFilesConfig(source=address, output_path=str(output), expected_sha256={"a.bin": sha256})
        assert download_files(unwrap_versioned_value(pinned))["bytes"] == 9


def test_a_file_that_is_stored_with_gzip_is_copied_as_it_is(server: CrawlServer, output: Path) -> None:
    """Apache sends "a.gz" with Content-Encoding: x-gzip, and the bytes of the file."""
    server.files["a.gz"] = CONTENT
    server.fault("a.gz", "encoded", "encoded", "encoded")
    download_files(config(server, output, "a.gz", access=StoreAccess()))
    assert gzip.decompress((output / "a.gz").read_bytes()) == CONTENT


def test_a_missing_file_is_an_error_at_once(server: CrawlServer, output: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.bin' does not exist, or its server refuses"):
        download_files(config(server, output, "none.bin"))
    assert len(server.requests) == 1


def test_retry_after_is_waited_for(server: CrawlServer, output: Path) -> None:
    server.fault("a.bin", "", "limited")
    copy(server, output, access=StoreAccess())
    _, refused_s, again_s = server.times_s
    assert again_s - refused_s >= 0.99


def test_retry_after_is_a_date_too(server: CrawlServer, output: Path) -> None:
    server.retry_after = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 2))
    server.fault("a.bin", "", "limited")
    copy(server, output, access=StoreAccess())
    assert server.times_s[2] - server.times_s[1] >= 0.9


def test_all_faults_in_any_order(server: CrawlServer, output: Path) -> None:
    draw = random.Random(8)
    for number in range(30):
        name = f"{number}.bin"
        server.files[name] = draw.randbytes(draw.randrange(1, 60_000))
        server.fault(name, *draw.sample([*PASSING, "", "", ""], draw.randrange(5)))
        download_files(config(server, output / str(number), name, access=StoreAccess(range_bytes=20_000)))
        assert (output / str(number) / name).read_bytes() == server.files[name]
