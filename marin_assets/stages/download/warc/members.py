"""The records of a gzip WARC file: one gzip member for each record, with exact borders.

In:  a file of which bytes are read by offset, and the offset from which records are searched.
Out: each record with the offset of its member, or a Damage. A damaged member costs one record: reading continues at the
     next gzip member that begins with a record.

Two readers: FastWARC's inflater for members that are as they should be, with each border compared; and zlib, one member
at a time, for every other one. Both give the same records. In bounded memory for any content.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Generator, Iterator
from itertools import chain
from typing import Protocol

from marin_assets.stages.download.warc.record import (
    CHUNK_BYTES,
    MAX_BLOCK_BYTES,
    Damage,
    Record,
    headers_of,
    parse_records,
)

_LINE_ENDS = frozenset("\r\n")
"""Letters that no header has. FastWARC divides headers at CRLF alone."""
MAGIC = b"\x1f\x8b\x08"
_FIRST = gzip.compress(b"WARC/1.0\r\nContent-Length: 0\r\n\r\n\r\n\r\n", mtime=0)
"""A member before the first one: of records in the first member, FastWARC reports the offset of the second."""
PROBED_BYTES = 4096
"""Compressed bytes of a trial inflation."""
WINDOW_BYTES = 2**20
MAX_FAILURES = 5
"""Members in a row that FastWARC does not read as expected: the file is of another writer, and is read by zlib."""
INFLATED_BYTES = 2**20
"""Limit of one call's output: 64 kB of a bomb inflate to 64 MB."""


class Readable(Protocol):
    """A file of known size."""

    size_bytes: int

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`, at least one unless the file ends there."""


def gzip_records(file: Readable, start: int) -> Iterator[Record | Damage]:
    """Yield the records whose members begin at `start` or after it, to the end of the file."""
    position = start if start == 0 else next_member(file, start)
    failures = 0
    while position is not None and position < file.size_bytes:
        before = position
        if failures < MAX_FAILURES:
            position = yield from _expected(file, position)
            failures = failures + 1 if position == before else 0
        position = yield from _exact(file, position)


def next_member(file: Readable, start: int) -> int | None:
    """The offset of the first gzip member at `start` or after it that begins with a record; None if none does."""
    while start < file.size_bytes:
        window = read_range(file, start, WINDOW_BYTES)
        at = window.find(MAGIC)
        while at >= 0:
            probed = window[at : at + PROBED_BYTES]
            if len(probed) < PROBED_BYTES:
                probed = read_range(file, start + at, PROBED_BYTES)
            if _begins_with_record(probed):
                return start + at
            at = window.find(MAGIC, at + 1)
        if start + len(window) >= file.size_bytes or len(window) < len(MAGIC):
            return None
        start += len(window) - len(MAGIC) + 1
    return None


def _begins_with_record(data: bytes) -> bool:
    try:
        return zlib.decompressobj(31).decompress(data, 64).startswith(b"WARC/")
    except zlib.error:
        return False


def read_range(file: Readable, offset: int, size: int) -> bytes:
    """`size` bytes, fewer at the end of the file alone."""
    parts = []
    while size > 0 and (block := file.read_at(offset, size)):
        parts.append(block)
        offset, size = offset + len(block), size - len(block)
    return b"".join(parts)


def _expected(file: Readable, start: int) -> Generator[Record, None, int]:
    """Yield the records of members that hold one record and nothing else. Return the offset of the first other member.

    A record is yielded after the next one has begun: then its member has ended, and its size is in the last four bytes.
    """
    from fastwarc import ArchiveIterator
    from fastwarc.stream_io import GzipReader

    raw = RawFile(file, start, before=_FIRST)
    reader = GzipReader(raw)
    origin = start - len(_FIRST)
    member, held, held_bytes = start, None, 0
    try:
        for record in ArchiveIterator(reader, parse_http=False):
            frame = origin + (reader.frame_start_position() or 0)
            if frame == origin:
                continue
            if held is not None:
                if frame == member or raw.last_number(frame) != held_bytes % 2**32:
                    break
                yield held
                held, member = None, frame
            # after headers without an end FastWARC reads on in the next member, as if they were its headers
            if frame != member or origin + record.stream_pos != frame:
                break
            pairs, length = record.headers.items(), record.content_length
            headers = headers_of(pairs)
            if headers.get("content-length") != str(length) or not _LINE_ENDS.isdisjoint("".join(chain(*pairs))):
                break
            block = record.reader.read(length) if length <= MAX_BLOCK_BYTES else None
            arrived = len(block) if block is not None else _consume(record.reader, length)
            if arrived != length or origin + (reader.frame_start_position() or 0) != member:
                break
            held, held_bytes = Record(member, headers, block), _size_of(pairs) + length + len(b"\r\n\r\n")
    except (OSError, ValueError) as error:
        if raw.error is not None:
            raise raw.error from error
    if raw.error is not None:
        raise raw.error
    return member


def _size_of(pairs: tuple[tuple[str, str], ...]) -> int:
    """The bytes of headers in their usual form, with the first line and the empty one."""
    text = "".join(chain(*pairs))
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    return size + len(": \r\n") * len(pairs) + len("WARC/1.0\r\n\r\n")


def _consume(reader: object, size: int) -> int:
    consumed = 0
    while consumed < size and (block := reader.read(min(CHUNK_BYTES, size - consumed))):  # type: ignore[attr-defined]
        consumed += len(block)
    return consumed


class RawFile(io.RawIOBase):
    """The file from an offset on, for libraries. It keeps an error of the file, which they could report as damage."""

    def __init__(self, file: Readable, start: int, *, before: bytes = b"") -> None:
        """`before`: bytes that are read before those of the file."""
        self._file, self._start, self._position, self._before = file, start, 0, before
        self._tail = b""
        """The bytes that were read last."""
        self.error: Exception | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._position < len(self._before):
            data = self._before[self._position :]
            self._position += len(data)
            return data
        offset = self._start + self._position - len(self._before)
        try:
            data = self._file.read_at(offset, size if size >= 0 else WINDOW_BYTES)
        except Exception as error:  # of a store or a server; it is raised again in `_expected`
            self.error = error
            raise
        self._position += len(data)
        self._tail = self._tail[-CHUNK_BYTES:] + data
        return data

    def tell(self) -> int:
        return self._position

    def last_number(self, end: int) -> int | None:
        """The number in the four bytes before offset `end` of the file; None if they were not read just now."""
        at = end - (self._start + self._position - len(self._before) - len(self._tail))
        return int.from_bytes(self._tail[at - 4 : at], "little") if at >= 4 else None


class SeekableFile(RawFile):
    """The file, for libraries that jump in it and expect as many bytes as they request."""

    def __init__(self, file: Readable) -> None:
        super().__init__(file, 0)
        self._size = file.size_bytes

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        rest_bytes = max(0, self._size - self._position)
        rest_bytes = rest_bytes if size < 0 else min(size, rest_bytes)
        parts = []
        while rest_bytes > 0 and (part := super().read(min(rest_bytes, WINDOW_BYTES))):
            parts.append(part)
            rest_bytes -= len(part)
        return b"".join(parts)


def _exact(file: Readable, offset: int) -> Generator[Record | Damage, None, int | None]:
    """Yield the records of one member, and a Damage if it is damaged.

    Return the offset of the next member; None if none follows.
    """
    member = _Member(file, offset)
    is_damaged = False
    try:
        for item in parse_records(member.chunks(), offset):
            is_damaged = isinstance(item, Damage)
            yield item
    except (zlib.error, EOFError) as error:
        if not is_damaged:  # else it is the rest of a record of a wrong length
            is_cut = isinstance(error, EOFError)
            detail = f"the file ends at {file.size_bytes}, within it" if is_cut else str(error)
            yield Damage(offset, "cut_record" if is_cut else "damaged_record", detail)
    return member.end if member.end is not None else next_member(file, offset + 1)


class _Member:
    """One gzip member. `end` is its end as soon as it is inflated whole."""

    def __init__(self, file: Readable, offset: int) -> None:
        self._file, self._offset = file, offset
        self.end: int | None = None

    def chunks(self) -> Iterator[bytes]:
        """Yield what it inflates to. Raises zlib.error for damage, EOFError at the end of the file."""
        inflate, position = zlib.decompressobj(31), self._offset
        while not inflate.eof:
            block = self._file.read_at(position, CHUNK_BYTES)
            if not block:
                raise EOFError
            position += len(block)
            while True:
                chunk = inflate.decompress(block, INFLATED_BYTES)
                if chunk:
                    yield chunk
                block = inflate.unconsumed_tail
                if inflate.eof or (not block and len(chunk) < INFLATED_BYTES):
                    break
        self.end = position - len(inflate.unused_data)
