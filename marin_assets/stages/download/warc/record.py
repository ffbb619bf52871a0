"""One record of a WARC file, the damage in place of one, and the parser of a decompressed stream of records.

    WARC/1.0 CRLF, headers, CRLF, the block of Content-Length bytes, CRLF CRLF

A record counts only if its block has exactly Content-Length bytes: the stream, or the next record, begins after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from marin_resources.types.errors import MarinError

MAX_HEADER_BYTES = 2**20
"""Limit of the headers of one record. Those of a crawl have 1 kB."""
MAX_BLOCK_BYTES = 64 * 2**20
"""Limit of a block that is held in memory. Crawls cut pages at 1 to 5 MB."""
CHUNK_BYTES = 2**16
DAMAGES = ("damaged_record", "cut_record", "wrong_length", "no_warc_header")
"""Reasons of damage: its bytes do not decompress; they end with the file; its block has another length than
Content-Length; it does not begin with the headers of a record."""
_FOLD = re.compile(r"\r?\n[ \t]+")
_VERSION = re.compile(rb"WARC/\d")


class CrawlError(MarinError, ValueError):
    """A file of a crawl that cannot be read, or a config that cannot be used: one sentence."""


class AbsentError(CrawlError):
    """A server that has no such file."""


@dataclass(frozen=True, slots=True)
class Record:
    """A whole record."""

    offset: int
    """Offset of its gzip member in the file, or of its own bytes in a plain file; -1 in another compressed file."""
    headers: Mapping[str, str]
    """By names in lower case. Values of a repeated name are joined with a space."""
    block: bytes | None
    """None if it has more than MAX_BLOCK_BYTES."""

    @property
    def kind(self) -> str:
        """WARC-Type, for example "response"."""
        return self.headers.get("warc-type", "").lower()


@dataclass(frozen=True, slots=True)
class Damage:
    """Takes the place of a record, or of all that is no record up to the next one."""

    offset: int
    reason: str
    """One of DAMAGES."""
    detail: str


def headers_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name in lower case."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        headers[name] = f"{headers[name]} {value}" if name in headers else value
    return headers


def parse_records(chunks: Iterator[bytes], offset: int, *, is_plain: bool = False) -> Iterator[Record | Damage]:
    """Yield the records of a decompressed stream, or a Damage, after which the rest of the stream is skipped.

    All have `offset`; in a plain file it grows with the bytes. An error of `chunks` ends the record at work.
    """
    stream = _Stream(chunks)
    while True:
        stream.skip_blanks()
        if not stream.peek(1):
            return
        at = offset + stream.position if is_plain else offset
        headers = stream.headers()
        length = headers.get("content-length", "") if headers is not None else ""
        if headers is None or not length.isdecimal() or len(length) > 18:
            detail = "no Content-Length" if headers is not None else "no headers of a record"
            yield Damage(at, "no_warc_header", detail)
            stream.skip()
            return
        size = int(length)
        block = stream.read(size) if size <= MAX_BLOCK_BYTES else None
        arrived = stream.skip(size) if block is None else len(block)
        if arrived < size:
            yield Damage(at, "wrong_length", f"{arrived} bytes, expected {size} by Content-Length")
            return
        stream.skip_blanks()
        rest = stream.peek(6)
        if rest and not _VERSION.match(rest):
            yield Damage(at, "wrong_length", f"more bytes after the {size} of Content-Length")
            stream.skip()
            return
        yield Record(at, headers, block)


class _Stream:
    """Chunks as one stream of bytes, of which a window is held."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held = chunks, bytearray()
        self.position = 0

    def _more(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self._held += chunk
        return True

    def peek(self, size: int) -> bytes:
        """The next bytes, fewer at the end."""
        while len(self._held) < size and self._more():
            pass
        return bytes(self._held[:size])

    def read(self, size: int) -> bytes:
        """The next bytes, fewer at the end, consumed."""
        data = self.peek(size)
        self._drop(len(data))
        return data

    def skip(self, size: int | None = None) -> int:
        """Skip bytes without holding them, all if None. Return their number."""
        skipped = 0
        while size is None or skipped < size:
            if not self._held and not self._more():
                break
            step = len(self._held) if size is None else min(size - skipped, len(self._held))
            self._drop(step)
            skipped += step
        return skipped

    def skip_blanks(self) -> None:
        while self._held or self._more():
            rest = self._held.lstrip(b"\r\n \t")
            self._drop(len(self._held) - len(rest))
            if rest:
                return

    def headers(self) -> dict[str, str] | None:
        """The headers of a record, consumed; None, and nothing consumed, if none begin here."""
        if not _VERSION.match(self.peek(6)):
            return None
        while (end := end_of_headers(self._held)) is None and len(self._held) <= MAX_HEADER_BYTES and self._more():
            pass
        if end is None or end > MAX_HEADER_BYTES:
            return None
        text = _FOLD.sub(" ", bytes(self._held[:end]).decode("utf-8", "replace"))
        self._drop(end)
        lines = (line.partition(":") for line in text.split("\n")[1:])
        return headers_of((name.strip(), value.strip()) for name, colon, value in lines if colon)

    def _drop(self, size: int) -> None:
        del self._held[:size]
        self.position += size


def end_of_headers(data: bytes | bytearray) -> int | None:
    """The end of the empty line after headers, with CRLF or LF as line ends; None without one."""
    ends = [end + len(mark) for mark in (b"\r\n\r\n", b"\n\n") if (end := data.find(mark, 0, MAX_HEADER_BYTES)) >= 0]
    return min(ends, default=None)
