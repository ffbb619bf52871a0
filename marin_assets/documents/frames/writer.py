"""Write rows as zstd frames of 1 MiB, and the index behind them. Equal rows are equal bytes.

In:  lines of rows, in order, with their ids.   Out: the bytes of a shard, in the layout of `layout.py`.

Frames of 128 KiB would take 16 % more than one frame, of 1 MiB 4 %, of 4 MiB 1 %, and a page of rows is read in one or
two of them. Frames do not name their raw size: a reader that decompresses "the" frame of a file in one call fails at a
shard, and does not take its first frame for all rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import IO

import zstandard

from marin_assets.documents.frames.layout import ID_BYTES, encode_index

FRAME_BYTES, FRAME_ROWS, MAX_FRAME_BYTES = 1024**2, 64, 4 * 1024**2
"""A frame ends with the row with which it reaches the first two, or the last. Frames of 1 MiB would have 17 pages of
HTML, which repeat each other, and take 11 % more than one frame; with 64 pages they take 3 % more."""
ZSTD_LEVEL = 3
MIN_ROW_BYTES = 400
"""Mean compressed bytes of a row from which ids are indexed: their 12 bytes are 3 % of the shard at most. For smaller
rows, such as attributes, they would be up to half of it, and a search has less to read."""
HASH_BYTES = 8
CHECKSUM_BYTES = 4
MAX_ROWS = 2**32


def id_hash(id: str) -> bytes:
    """The hash of an id in the index: as bytes, the number that `position` returns. Any text has one."""
    return hashlib.sha256(id.encode(errors="surrogatepass")).digest()[:HASH_BYTES]


class FrameWriter:
    """Writes the frames of one shard into an open file, and the index at the end. Holds 12 bytes for each id."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        # Without the raw size in the frame's header: see above.
        self._compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True, write_content_size=False)
        self._rows = self._written_bytes = 0
        self._sizes: list[tuple[int, int, int, int]] = []
        self._records: list[bytearray] | None = [bytearray() for _ in range(256)]
        """The records of ids by the first byte of their hash; None if they are not indexed."""

    def write(self, lines: Sequence[bytes], ids: Sequence[object]) -> None:
        """Write the rows of a frame: a line with its line feed, and an id, which may be no text, of each."""
        content = b"".join(lines)
        frame = self._compressor.compress(content)
        self._out.write(frame)
        checksum = int.from_bytes(frame[-CHECKSUM_BYTES:], "little")
        self._sizes.append((len(lines), len(frame), len(content), checksum))
        self._written_bytes += len(frame)
        self._record(ids)
        self._rows += len(lines)

    def close(self) -> None:
        """Write the index. A shard without rows has a frame without bytes."""
        if not self._sizes:
            self.write([], [])
        for piece in encode_index(self._sizes, [_sorted(records) for records in self._records or ()]):
            self._out.write(piece)

    def _record(self, ids: Sequence[object]) -> None:
        """Record the ids of a frame, hashed only now that the size of its rows has decided whether they are indexed."""
        rows = self._rows + len(ids)
        if self._records is None or rows * MIN_ROW_BYTES > self._written_bytes or rows > MAX_ROWS:
            self._records = None
            return
        for row, id in enumerate(ids, start=self._rows):
            if isinstance(id, str):
                digest = id_hash(id)
                self._records[digest[0]] += digest + row.to_bytes(4, "big")


def _sorted(records: bytearray) -> bytes:
    data = bytes(records)
    return b"".join(sorted(data[i : i + ID_BYTES] for i in range(0, len(data), ID_BYTES)))
