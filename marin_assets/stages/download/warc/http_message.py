"""The HTTP response in a record: status, headers, and the body without its transfer and content encodings.

    HTTP/1.1 200 OK CRLF, headers, CRLF, body

Line ends are CRLF or LF. A body that is not encoded as its headers state is taken as it is: crawlers store decoded
bodies below the original headers. One that is encoded and ends early is decoded up to there, as crawlers cut pages.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from marin_assets.documents.jsonl.lines import decompressed_chunks
from marin_assets.stages.download.warc.record import MAX_HEADER_BYTES, end_of_headers, headers_of

MAX_CODINGS = 3
"""A body with more content encodings is not decoded."""
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?:[ \t][^\n]*|\r?)\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]{0,4096})?\r?\n")
_READ_BYTES = 2**16


class BodyTooLargeError(Exception):
    """A body that decodes to more bytes than allowed."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response with its decoded body."""

    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes
    notes: frozenset[str] = field(default_factory=frozenset)
    """Any of "encoding_ignored": the body is not encoded as its headers state; "encoding_cut": it ends early."""


def parse_response(block: bytes, max_bytes: int) -> Response | None:
    """Return the response in a block; None if it does not begin with HTTP headers. Raises BodyTooLargeError."""
    match = _STATUS_LINE.match(block)
    end = end_of_headers(block) if match else None
    if match is None or end is None or end > MAX_HEADER_BYTES:
        return None
    lines = block[match.end() : end].decode("latin-1").split("\n")
    headers = headers_of(
        (name.strip(), value.strip()) for name, colon, value in (line.partition(":") for line in lines) if colon
    )
    body, notes = block[end:], set[str]()
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _decoded(body, _chunks, max_bytes, notes)
    codings = [name for name in re.split(r"[,\s]+", headers.get("content-encoding", "").lower()) if name in _DECODERS]
    if len(codings) > MAX_CODINGS:
        notes.add("encoding_ignored")
        codings = []
    for name in reversed(codings):
        body = _decoded(body, _DECODERS[name], max_bytes, notes)
    if len(body) > max_bytes:
        raise BodyTooLargeError
    return Response(int(match[1]), headers, body, frozenset(notes))


def _decoded(body: bytes, decode: Callable[[bytes], Iterator[bytes]], max_bytes: int, notes: set[str]) -> bytes:
    """The decoded body; the body itself if nothing of it decodes."""
    parts: list[bytes] = []
    size = 0
    try:
        for part in decode(body):
            parts.append(part)
            size += len(part)
            if size > max_bytes:
                raise BodyTooLargeError
    except (EncodingError, zlib.error, OSError, EOFError):
        if not size:
            notes.add("encoding_ignored")
            return body
        notes.add("encoding_cut")
    return b"".join(parts)


class EncodingError(Exception):
    """Bytes that are not encoded as stated."""


def _chunks(body: bytes) -> Iterator[bytes]:
    position = 0
    while match := _CHUNK_SIZE.match(body, position):
        size = int(match[1], 16)
        if size == 0:
            return
        yield body[match.end() : match.end() + size]
        position = match.end() + size
        if position > len(body):
            break
        position += 2 if body.startswith(b"\r\n", position) else 1 if body.startswith(b"\n", position) else 0
    raise EncodingError


def _inflated(body: bytes, window: int) -> Iterator[bytes]:
    while body:
        inflate = zlib.decompressobj(window)
        while not inflate.eof:
            part = inflate.decompress(body, _READ_BYTES)
            yield part
            body = inflate.unconsumed_tail
            if not part and not body and not inflate.eof:
                raise EncodingError
        body = inflate.unused_data if window == 31 and inflate.unused_data.startswith(b"\x1f\x8b") else b""


def _gzip(body: bytes) -> Iterator[bytes]:
    return _inflated(body, 31)


def _deflate(body: bytes) -> Iterator[bytes]:
    """zlib's form, or the bare one that some servers send."""
    try:
        zlib.decompressobj(15).decompress(body, 1)
    except zlib.error:
        return _inflated(body, -15)
    return _inflated(body, 15)


def _brotli(body: bytes) -> Iterator[bytes]:
    from fastwarc.stream_io import BrotliReader

    with BrotliReader(io.BytesIO(body)) as reader:
        while part := reader.read(_READ_BYTES):
            yield part


def _zstd(body: bytes) -> Iterator[bytes]:
    import zstandard

    try:
        yield from decompressed_chunks(io.BytesIO(body), ".zst")
    except zstandard.ZstdError as error:
        raise EncodingError(str(error)) from error


_DECODERS: Mapping[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
