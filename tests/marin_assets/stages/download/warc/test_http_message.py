"""The HTTP response in a record: its head, its encodings, and bodies that are not encoded as stated."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
import zstandard

from marin_assets.stages.download.warc.http_message import BodyTooLargeError, Response, parse_response

PAGE = b"<html><body>" + b"".join(b"<p>owl %d</p>" % number for number in range(500)) + b"</body></html>"
CHUNKED = b"".join(
    b"%x;name=value\r\n%s\r\n" % (len(PAGE[i : i + 999]), PAGE[i : i + 999]) for i in range(0, len(PAGE), 999)
)


def parsed(headers: str, body: bytes, *, line_end: str = "\r\n", max_bytes: int = 10**6) -> Response:
    head = f"HTTP/1.1 200 OK\n{headers}\n\n".replace("\n", line_end)
    response = parse_response(head.encode() + body, max_bytes)
    assert response is not None
    return response


@pytest.mark.parametrize("line_end", ["\r\n", "\n"])
def test_a_head_ends_with_an_empty_line_of_either_kind(line_end: str) -> None:
    response = parsed("Content-Type: text/html; charset=UTF-8\nX:y", PAGE, line_end=line_end)
    assert response.status == 200
    assert response.headers == {"content-type": "text/html; charset=UTF-8", "x": "y"}
    assert response.body == PAGE
    assert not response.notes


@pytest.mark.parametrize(
    "block", [b"", PAGE, b"HTTP/1.1 200 OK\r\nA: b\r\n", b"HTTP/1.1 OK\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"]
)
def test_a_block_without_a_head_is_no_response(block: bytes) -> None:
    assert parse_response(block, 10**6) is None


def test_a_head_of_40_kb_is_read_and_one_above_the_limit_is_not() -> None:
    assert parsed("Set-Cookie: " + "x" * 40_000, PAGE).body == PAGE
    assert parse_response(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 2**21 + b"\r\n\r\n" + PAGE, 10**7) is None


ENCODED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE[:100]) + gzip.compress(PAGE[100:]),
    "deflate": zlib.compress(PAGE),
    "br": brotli.compress(PAGE),
    "zstd": zstandard.compress(PAGE),
    "gzip, br": brotli.compress(gzip.compress(PAGE)),
    "identity": PAGE,
}


@pytest.mark.parametrize("coding", ENCODED)
def test_an_encoded_body_is_decoded(coding: str) -> None:
    response = parsed(f"Content-Encoding: {coding}", ENCODED[coding])
    assert response.body == PAGE
    assert not response.notes


def test_deflate_without_its_header_is_decoded() -> None:
    assert parsed("Content-Encoding: deflate", zlib.compress(PAGE)[2:-4]).body == PAGE


@pytest.mark.parametrize("header", ["Content-Encoding: gzip", "Content-Encoding: br", "Content-Encoding: zstd",
                                    "Content-Encoding: deflate", "Transfer-Encoding: chunked"])  # fmt: skip
def test_a_plain_body_below_the_header_of_an_encoding_is_taken_as_it_is(header: str) -> None:
    response = parsed(header, PAGE)
    assert response.body == PAGE
    assert response.notes == {"encoding_ignored"}


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_an_encoded_body_that_was_cut_is_decoded_to_its_end(coding: str) -> None:
    draw = bytes(range(256)) * 2000
    page = b"".join(b"%d %s" % (i * i, draw[i : i + 50]) for i in range(20_000))
    whole = {"gzip": gzip.compress, "deflate": zlib.compress, "br": lambda data: brotli.compress(data, quality=1)}
    encoded = whole.get(coding, zstandard.compress)(page)
    response = parsed(f"Content-Encoding: {coding}", encoded[: len(encoded) // 2], max_bytes=10**8)
    assert 0 < len(response.body) < len(page)
    assert page.startswith(response.body)
    assert response.notes == {"encoding_cut"}


def test_chunks_are_joined() -> None:
    assert parsed("Transfer-Encoding: chunked", CHUNKED + b"0\r\n\r\n").body == PAGE
    both = parsed(
        "Transfer-Encoding: chunked\nContent-Encoding: br", b"%x\n%s\n0\n\n" % (len(ENCODED["br"]), ENCODED["br"])
    )
    assert both.body == PAGE
    cut = parsed("Transfer-Encoding: chunked", CHUNKED[:-500])
    assert PAGE.startswith(cut.body)
    assert cut.notes == {"encoding_cut"}


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
def test_a_bomb_is_too_large_as_soon_as_it_is(coding: str) -> None:
    zeros = bytes(200_000_000)
    compress = {"gzip": gzip.compress, "br": lambda data: brotli.compress(data, quality=1), "deflate": zlib.compress}
    bomb = compress.get(coding, zstandard.compress)(zeros)
    with pytest.raises(BodyTooLargeError):
        parsed(f"Content-Encoding: {coding}", bomb)
    assert parsed("Content-Encoding: " + "gzip, " * 5000, gzip.compress(PAGE)).notes == {"encoding_ignored"}
