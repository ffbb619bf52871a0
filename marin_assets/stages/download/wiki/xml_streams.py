"""The text of an XML dump from an offset on: plain, or bzip2 streams, of which each can be entered.

A dump of "multistream" has a stream for each 100 pages. A stream begins with ten bytes that compressed data does not
have by chance (80 bits), so the next one is found from any offset, with or without the dump's index.
"""

from __future__ import annotations

import bz2
import codecs
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from marin_assets.documents.jsonl.lines import CHUNK_BYTES
from marin_assets.stages.download.warc.members import WINDOW_BYTES, Readable

HEAD = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
"""The first bytes of a stream: its block size, and the mark of a block or of the end."""
HEAD_BYTES = 10
PROBED_BYTES = 2**21
"""Bytes in which a file of several streams has the head of its second one: a block has at most 900 kB."""


@dataclass(frozen=True, slots=True)
class Text:
    """A part of the dump's text. Of a plain file `offset` is its own, else that of the stream that it is in."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """A stream was read to its end, and its checksums match."""

    offset: int


@dataclass(frozen=True, slots=True)
class LostStream:
    """Takes the place of the rest of a damaged stream."""

    offset: int
    behind: int | None
    """The offset at which reading continues; None if no stream follows."""
    detail: str


Part = Text | StreamEnd | LostStream


def is_bz2(file: Readable) -> bool:
    return file.read_at(0, 3) == b"BZh"


def has_streams(file: Readable) -> bool:
    """Whether a bzip2 file has a second stream near its start."""
    return next_head(file, 1, most=PROBED_BYTES) is not None


def parts_from(file: Readable, start: int) -> Iterator[Part]:
    """Yield the text of a file from `start` on, or from the first stream that begins there or behind it."""
    if not is_bz2(file):
        while data := file.read_at(start, CHUNK_BYTES):
            yield Text(start, data)
            start += len(data)
        return
    position = start if start == 0 else next_head(file, start)
    while position is not None and position < file.size_bytes:
        position = yield from _stream(file, position)


def next_head(file: Readable, start: int, *, most: int | None = None) -> int | None:
    """The offset of the first stream at `start` or behind it, within `most` bytes; None without one."""
    end = file.size_bytes if most is None else min(file.size_bytes, start + most)
    held = b""
    while start < end and (data := file.read_at(start, WINDOW_BYTES)):
        window = held + data
        if match := HEAD.search(window):
            return start - len(held) + match.start()
        held = window[-(HEAD_BYTES - 1) :]
        start += len(data)
    return None


def _stream(file: Readable, offset: int) -> Generator[Part, None, int | None]:
    """Yield one stream. Return the offset of the next one, None if none follows."""
    inflate, position = bz2.BZ2Decompressor(), offset
    detail = ""
    while not detail and not inflate.eof:
        block = file.read_at(position, CHUNK_BYTES) if inflate.needs_input else b""
        position += len(block)
        if inflate.needs_input and not block:
            detail = f"the file ends at byte {file.size_bytes}, within it"
            break
        try:
            data = inflate.decompress(block, CHUNK_BYTES)
        except (OSError, ValueError) as error:
            detail = str(error)
            break
        if data:
            yield Text(offset, data)
    if detail:
        behind = next_head(file, offset + 1)
        yield LostStream(offset, behind, detail)
        return behind
    yield StreamEnd(offset)
    return position - len(inflate.unused_data)


def as_utf8(parts: Iterator[Part], encoding: str) -> Iterator[Part]:
    """Yield text of another encoding as UTF-8, from the start of a file on; a LostStream where it is none."""
    decode = codecs.getincrementaldecoder(encoding)().decode
    offset = 0
    for part in parts:
        if not isinstance(part, Text):
            yield part
            continue
        offset = part.offset
        try:
            yield Text(offset, decode(part.data).encode())
        except UnicodeError as error:
            yield LostStream(offset, None, f"it is no {encoding}: {error}")
            return
