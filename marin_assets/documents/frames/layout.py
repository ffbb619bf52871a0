"""The layout of the index at the end of a shard: two skippable frames of zstd, which every reader of zstd passes over.

    zstd frames         rows of about 1 MiB each, as lines
    skippable frame     magic 0x184D2A5D: ids, first rows, counts, checksum
    skippable frame     magic 0x184D2A5E: the seek table of zstd's seekable format, version 0.1.0

    ids             12 bytes for each row with an id that is a text: its hash (8 bytes, big endian) and the row (4, big
                    endian), sorted. The hash is that of `position`. None if the rows are too small: see `writer.py`
    first rows      8 bytes for each frame of rows
    counts          rows (8 bytes), ids (8), frames of rows (4)
    checksum        CRC-32 of first rows, counts and the seek table (4), then b"rows" and the version of the layout (1)

The seek table has, for each frame of rows and for the index of ids, compressed bytes, raw bytes and a checksum of the
raw bytes, 4 bytes each. That checksum is also the end of each zstd frame, so a table is never taken for that of other
frames. Numbers are little endian but for the ids. The index is a part of the shard: both are published as one file.

https://github.com/facebook/zstd/blob/dev/contrib/seekable_format/zstd_seekable_compression_format.md
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

INDEX_MAGIC = 0x184D2A5D
SEEK_MAGIC = 0x184D2A5E
SEEKABLE_MAGIC = 0x8F92EAB1
VERSION = 1
HAS_CHECKSUMS = 0x80
"""The one bit of the seek table's descriptor that is set."""
CHECKSUM_OF_NOTHING = 0x51D8E999
"""The lower half of XXH64 of no bytes: the entry of the index of ids."""
ID_BYTES, FIRST_ROW_BYTES = 12, 8

_SKIPPABLE = struct.Struct("<II")
_COUNTS = struct.Struct("<QQI")
_END = struct.Struct("<I4sB")
_NAME = b"rows"
_ENTRY = struct.Struct("<III")
_SEEK_END = struct.Struct("<IBI")


class DamagedIndexError(ValueError):
    """The end of a shard is an index, and its numbers contradict each other: a phrase, which a sentence takes in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A zstd frame of whole rows."""

    first_row: int
    rows: int
    start: int
    """Offset in the file."""
    size_bytes: int
    raw_bytes: int
    checksum: int
    """Checksum of the raw bytes, the last 4 bytes of the frame."""

    @property
    def end(self) -> int:
        return self.start + self.size_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardIndex:
    """The index of a shard."""

    rows: int
    first_rows: Sequence[int]
    """The first row of each frame, and at the end the number of rows."""
    starts: Sequence[int]
    """Offset in the file of each frame, without gaps, and at the end that of the index."""
    sizes: Sequence[tuple[int, int, int]]
    """Bytes, raw bytes and checksum of each frame."""
    ids: int
    """Number of indexed ids, 0 if the shard has no index of ids."""
    ids_start: int
    """Offset of the first id in the file."""

    def frames_of(self, start: int, count: int) -> list[Frame]:
        """The frames with the rows from `start` to `start + count - 1`, as far as they exist."""
        if start >= self.rows or not count:
            return []
        end = min(start + count, self.rows)
        return [
            self._frame(i) for i in range(bisect_right(self.first_rows, start) - 1, bisect_left(self.first_rows, end))
        ]

    def _frame(self, i: int) -> Frame:
        size, raw, checksum = self.sizes[i]
        first_row, end_row = self.first_rows[i : i + 2]
        return Frame(
            first_row=first_row,
            rows=end_row - first_row,
            start=self.starts[i],
            size_bytes=size,
            raw_bytes=raw,
            checksum=checksum,
        )


def encode_index(sizes: Sequence[tuple[int, int, int, int]], ids: Sequence[bytes]) -> list[bytes]:
    """The bytes of an index, in pieces. `sizes` has rows, bytes, raw bytes and checksum of each frame; `ids` are the
    sorted records of ids, in pieces."""
    starts = [0, *accumulate(rows for rows, *_ in sizes)]
    ids_bytes = sum(map(len, ids))
    tables = struct.pack(f"<{len(sizes)}Q", *starts[:-1]) + _COUNTS.pack(starts[-1], ids_bytes // ID_BYTES, len(sizes))
    content_bytes = ids_bytes + len(tables) + _END.size
    entries = [_ENTRY.pack(size, raw, checksum) for _, size, raw, checksum in sizes]
    entries.append(_ENTRY.pack(_SKIPPABLE.size + content_bytes, 0, CHECKSUM_OF_NOTHING))
    table = b"".join(entries) + _SEEK_END.pack(len(entries), HAS_CHECKSUMS, SEEKABLE_MAGIC)
    seek = _SKIPPABLE.pack(SEEK_MAGIC, len(table)) + table
    end = _END.pack(zlib.crc32(seek, zlib.crc32(tables)), _NAME, VERSION)
    return [_SKIPPABLE.pack(INDEX_MAGIC, content_bytes), *ids, tables, end, seek]


def index_bytes(tail: bytes) -> int:
    """The bytes at the end of a file that `decode_index` needs, by its last ones; 0 if they are no seek table."""
    if len(tail) < _SEEK_END.size:
        return 0
    entries, descriptor, magic = _SEEK_END.unpack_from(tail, len(tail) - _SEEK_END.size)
    if magic != SEEKABLE_MAGIC or descriptor != HAS_CHECKSUMS or not entries:
        return 0
    return _seek_bytes(entries) + _END.size + _COUNTS.size + FIRST_ROW_BYTES * (entries - 1)


def decode_index(tail: bytes, file_bytes: int) -> ShardIndex | None:
    """The index in the last bytes of a file, at least `index_bytes` of them; None if they are no index of this layout,
    or that of a part of the file, as after `cat a.jsonl.zst b.jsonl.zst`. Raises DamagedIndexError."""
    entries = _SEEK_END.unpack_from(tail, len(tail) - _SEEK_END.size)[0]
    seek = tail[len(tail) - _seek_bytes(entries) :]
    before = tail[: len(tail) - len(seek)]
    checksum, name, version = _END.unpack_from(before, len(before) - _END.size)
    if name != _NAME or version != VERSION or _SKIPPABLE.unpack_from(seek)[0] != SEEK_MAGIC:
        return None
    tables_end = len(before) - _END.size
    rows, ids, frames = _COUNTS.unpack_from(before, tables_end - _COUNTS.size)
    tables = before[tables_end - _COUNTS.size - FIRST_ROW_BYTES * (entries - 1) : tables_end]
    if frames != entries - 1 or checksum != zlib.crc32(seek, zlib.crc32(tables)):
        raise DamagedIndexError("its checksum differs from that of its bytes")
    sizes = list(_ENTRY.iter_unpack(seek[_SKIPPABLE.size : len(seek) - _SEEK_END.size]))
    if sum(size for size, *_ in sizes) + len(seek) != file_bytes:
        return None
    first_rows = (*struct.unpack_from(f"<{frames}Q", tables), rows)
    starts = [0, *accumulate(size for size, *_ in sizes)]
    ids_start = starts[frames] + _SKIPPABLE.size
    ordered = first_rows[0] == 0 and all(a <= b for a, b in pairwise(first_rows))
    if not ordered or sizes[frames][0] < ids * ID_BYTES:
        raise DamagedIndexError("its rows are not in order, or it has more ids than bytes")
    return ShardIndex(
        rows=rows, first_rows=first_rows, starts=starts, sizes=sizes[:frames], ids=ids, ids_start=ids_start
    )


def _seek_bytes(entries: int) -> int:
    return _SKIPPABLE.size + entries * _ENTRY.size + _SEEK_END.size
