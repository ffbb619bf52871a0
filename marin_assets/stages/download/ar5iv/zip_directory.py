"""The directory of a zip archive: its members with their places, read once, as a stream, from the end of the file.

zipfile holds a kilobyte for each of a million members, and every task would read the directory again. The format is
APPNOTE.TXT of PKWARE, 4.3.12 to 4.3.16, with Zip64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.stages.download.warc.members import Readable, read_range
from marin_assets.stages.download.warc.record import CrawlError

END = struct.Struct("<4s4H2LH")
"""The end of the directory: signature, disk, disk of the directory, members here, members, bytes, offset, comment."""
END_64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR_64 = struct.Struct("<4sLQL")
ENTRY = struct.Struct("<4s6H3L5H2L")
"""Signature, made by, needed, flags, method, time, date, checksum, two sizes, lengths of name, extra and comment, disk,
two attributes, offset."""
END_MARK, END_64_MARK, LOCATOR_64_MARK, ENTRY_MARK = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2"
MAX_COMMENT_BYTES = 2**16 - 1
IS_UTF8 = 0x800
IN_EXTRA = 2**32 - 1
"""Value of a field that Zip64 has in the extra field."""
BLOCK_BYTES = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A member, as the directory has it."""

    name: str
    offset: int
    """Offset of its local header in the file."""
    packed_bytes: int
    size_bytes: int
    checksum: int
    method: int
    flags: int


@dataclass(frozen=True, kw_only=True)
class Directory:
    """The place of a directory."""

    start: int
    end: int
    members: int
    shift: int
    """Bytes before the archive, which offsets do not count."""


def entries_of(file: Readable, name: str) -> Iterator[Entry]:
    """Yield the members in the order of the directory. Raises CrawlError for a file that is no whole archive."""
    directory = find_directory(file, name)
    rest, position, members = b"", directory.start, 0
    while position < directory.end or rest:
        if position < directory.end:
            rest += read_range(file, position, min(BLOCK_BYTES, directory.end - position))
            position = min(position + BLOCK_BYTES, directory.end)
        done = 0
        for entry, end in _entries(rest, directory, name):
            yield entry
            members += 1
            done = end
        rest = rest[done:]
        if position == directory.end and rest:
            raise _damaged(name, f"its directory has no member's entry after {members:,} of them")
    if members != directory.members:
        raise _damaged(name, f"its directory has {members:,} members, its end states {directory.members:,}")


def find_directory(file: Readable, name: str) -> Directory:
    """Return the place of the directory. Raises CrawlError."""
    tail_start = max(0, file.size_bytes - END.size - MAX_COMMENT_BYTES)
    tail = read_range(file, tail_start, file.size_bytes - tail_start)
    at = tail.rfind(END_MARK)
    while at >= 0 and (len(tail) - at < END.size or at + END.size + END.unpack_from(tail, at)[7] != len(tail)):
        at = tail.rfind(END_MARK, 0, at)
    if at < 0:
        raise _damaged(name, "it has no end of a directory")
    _, disk, first_disk, _, members, size, offset, _ = END.unpack_from(tail, at)
    end = tail_start + at
    if at >= LOCATOR_64.size and tail[at - LOCATOR_64.size :].startswith(LOCATOR_64_MARK):
        disk, first_disk, members, size, offset, end = _zip64(file, name, end - LOCATOR_64.size)
    if disk or first_disk:
        raise _damaged(name, "it is one part of an archive of several")
    shift = end - size - offset
    if shift < 0:
        raise _damaged(name, f"its directory of {size} bytes at byte {offset} ends after byte {end}, where it must end")
    return Directory(start=offset + shift, end=end, members=members, shift=shift)


def _zip64(file: Readable, name: str, locator_at: int) -> tuple[int, int, int, int, int, int]:
    at = locator_at - END_64.size
    stated = LOCATOR_64.unpack(read_range(file, locator_at, LOCATOR_64.size))[2]
    for start in (stated, at):  # it is elsewhere than stated if bytes precede the archive
        if 0 <= start <= at:
            fields = END_64.unpack(read_range(file, start, END_64.size))
            if fields[0] == END_64_MARK:
                return fields[4], fields[5], fields[7], fields[8], fields[9], start
    raise _damaged(name, "it has no Zip64 end of a directory where it must be")


def _entries(data: bytes, directory: Directory, name: str) -> Iterator[tuple[Entry, int]]:
    """Yield the whole entries at the beginning of `data`, each with its end."""
    start = 0
    while len(data) - start >= ENTRY.size:
        fields = ENTRY.unpack_from(data, start)
        if fields[0] != ENTRY_MARK:
            return
        names, extras, comments = fields[10:13]
        end = start + ENTRY.size + names + extras + comments
        if end > len(data):
            return
        encoded = data[start + ENTRY.size :][:names]
        flags, method, checksum, packed, size, offset = fields[3], fields[4], *fields[7:10], fields[16]
        if IN_EXTRA in (packed, size, offset):
            extra = data[start + ENTRY.size + names :][:extras]
            size, packed, offset = _in_extra(extra, (size, packed, offset), name)
        text = encoded.decode("utf-8" if flags & IS_UTF8 else "cp437", "replace")
        yield (
            Entry(
                name=text,
                offset=offset + directory.shift,
                packed_bytes=packed,
                size_bytes=size,
                checksum=checksum,
                method=method,
                flags=flags,
            ),
            end,
        )
        start = end


def _in_extra(extra: bytes, values: tuple[int, ...], name: str) -> list[int]:
    """Return the values, those that do not fit 32 bits from the Zip64 field. Raises CrawlError without it."""
    at = 0
    while len(extra) - at >= 4:
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            field = extra[at + 4 : at + 4 + size]
            large = iter(struct.unpack(f"<{len(field) // 8}Q", field[: len(field) // 8 * 8]))
            all_values = [next(large, -1) if value == IN_EXTRA else value for value in values]
            if -1 not in all_values:
                return all_values
        at += 4 + size
    raise _damaged(name, "an entry of its directory has no Zip64 field")


def _damaged(name: str, why: str) -> CrawlError:
    return CrawlError(f"The file {name!r} is no whole zip archive: {why}. Download it again.")
