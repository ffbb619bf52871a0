"""Read the index of a shard, rows of its frames, and the row of an id: each by ranges of the file.

In:  a path.   Out: the index, lines of JSON, a row number. A file that ends with no index has None.

In a bucket, a file costs one request for its size and one for its end, its rows one more. A shard of less than 64 KiB
is read once.
"""

from __future__ import annotations

import io
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import zstandard

from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import compression_of
from marin_assets.documents.frames.layout import (
    ID_BYTES,
    DamagedIndexError,
    Frame,
    ShardIndex,
    decode_index,
    index_bytes,
)
from marin_assets.documents.frames.writer import CHECKSUM_BYTES, HASH_BYTES, id_hash
from marin_assets.documents.jsonl.lines import TooLong, decompressed_chunks, require_expansion, split_lines
from marin_resources.storage.files import read_range, stored_file

TAIL_BYTES = 64 * 1024
"""The index of 3,200 frames fits, without its ids."""
RANGE_BYTES = 8 * 1024**2
"""Limit of frames that are read by one request, if they are more than one."""
WHOLE_FRAME_BYTES = 8 * 1024**2
"""Raw bytes up to which a frame is held in memory as a whole. The writer's have at most 4 MiB and a row."""
WINDOW_IDS = 4096
"""Ids read at once, near the place where evenly distributed hashes have the one that is searched."""


class IndexedShard:
    """A shard with an index. Each frame is compared with it, so a file that was replaced meanwhile is noticed."""

    def __init__(self, path: str, index: ShardIndex, tail: bytes, file_bytes: int) -> None:
        self.index = index
        self._path, self._tail, self._file_bytes = path, tail, file_bytes

    def lines(self, start: int, count: int) -> Iterator[bytes | TooLong]:
        """Yield the lines of the rows from `start` to `start + count - 1`, as far as they exist.

        Raises DocumentError.
        """
        end = min(start + count, self.index.rows)
        for frames in _ranges(self.index.frames_of(start, count)):
            data, offset = self._read(frames[0].start, frames[-1].end), frames[0].start
            for frame in frames:
                content = data[frame.start - offset : frame.end - offset]
                low, high = max(start - frame.first_row, 0), end - frame.first_row
                if frame.raw_bytes <= WHOLE_FRAME_BYTES:
                    yield from self._all_lines_of(frame, content)[low:high]
                    continue
                for row, line in enumerate(self._lines_of(frame, content)):
                    if low <= row < high:
                        yield line

    def rows_of_id(self, id: str) -> list[int]:
        """The rows that may have the id, in order: those with its hash. The shard has an index of ids."""
        digest = id_hash(id)
        expected = int.from_bytes(digest, "big") * self.index.ids >> 8 * HASH_BYTES
        first, last = expected - WINDOW_IDS // 2, expected + WINDOW_IDS // 2
        while True:
            first, last = max(first, 0), min(last, self.index.ids)
            hashes, rows = self._ids(first, last)
            low, high = bisect_left(hashes, digest), bisect_left(hashes, digest + b"\xff")
            if (low > 0 or first == 0) and (high < len(hashes) or last == self.index.ids):
                return rows[low:high]
            first, last = first - (last - first), last + (last - first)

    def rows_of_ids(self, ids: Sequence[str]) -> dict[str, list[int]]:
        """The rows that may have each of many ids, as `rows_of_id`: the whole index of ids is read, once."""
        data = self.ids_bytes()

        def hash_at(place: int) -> bytes:
            return data[place * ID_BYTES : place * ID_BYTES + HASH_BYTES]

        rows: dict[str, list[int]] = {}
        for id in ids:
            digest = id_hash(id)
            place = bisect_left(range(self.index.ids), digest, key=hash_at)
            rows[id] = []
            while place < self.index.ids and hash_at(place) == digest:
                end = (place + 1) * ID_BYTES
                rows[id].append(int.from_bytes(data[end - ID_BYTES + HASH_BYTES : end], "big"))
                place += 1
        return rows

    def ids_bytes(self) -> bytes:
        """The index of ids, as `layout.py` describes it."""
        return self._read(self.index.ids_start, self.index.ids_start + self.index.ids * ID_BYTES)

    def _ids(self, first: int, last: int) -> tuple[list[bytes], list[int]]:
        start = self.index.ids_start
        data = self._read(start + first * ID_BYTES, start + last * ID_BYTES)
        records = [data[i : i + ID_BYTES] for i in range(0, len(data), ID_BYTES)]
        return [r[:HASH_BYTES] for r in records], [int.from_bytes(r[HASH_BYTES:], "big") for r in records]

    def _all_lines_of(self, frame: Frame, data: bytes) -> list[bytes]:
        """The lines of a frame that is held in memory: its 10,000 rows of attributes are cut at once."""
        self._require_checksum(frame, data)
        try:
            lines = b"".join(self._bounded(frame, data)).split(b"\n")
        except (EOFError, zstandard.ZstdError) as error:
            raise self._damaged(f"is damaged ({type(error).__name__}: {error})") from error
        if not lines[-1]:
            lines.pop()
        if len(lines) != frame.rows:
            raise self._damaged(f"has {len(lines)} rows, and {frame.rows} by its index")
        return lines

    def _lines_of(self, frame: Frame, data: bytes) -> Iterator[bytes | TooLong]:
        self._require_checksum(frame, data)
        rows = 0
        try:
            for line in split_lines(self._bounded(frame, data)):
                rows += 1
                yield line
        except (EOFError, zstandard.ZstdError) as error:
            raise self._damaged(f"is damaged ({type(error).__name__}: {error})") from error
        if rows != frame.rows:
            raise self._damaged(f"has {rows} rows, and {frame.rows} by its index")

    def _require_checksum(self, frame: Frame, data: bytes) -> None:
        if int.from_bytes(data[-CHECKSUM_BYTES:], "little") != frame.checksum:
            raise self._damaged("is not that of its index")

    def _bounded(self, frame: Frame, data: bytes) -> Iterator[bytes]:
        raw_bytes = 0
        for chunk in decompressed_chunks(io.BytesIO(data), ".zst"):
            raw_bytes += len(chunk)
            require_expansion(self._path, raw_bytes, len(data))
            if raw_bytes > frame.raw_bytes:
                break
            yield chunk
        if raw_bytes != frame.raw_bytes:
            raise self._damaged(f"has {raw_bytes} raw bytes, and {frame.raw_bytes} by its index")

    def _read(self, start: int, end: int) -> bytes:
        tail_start = self._file_bytes - len(self._tail)
        if start >= tail_start:
            return self._tail[start - tail_start : end - tail_start]
        data = read_range(self._path, start, end)
        if len(data) != end - start:
            raise self._damaged(f"ends after {len(data)} of {end - start} bytes")
        return data

    def _damaged(self, phrase: str) -> DocumentError:
        return DocumentError(
            f"A frame of {self._path!r} {phrase}: the file is damaged, or was replaced while it was read. Read it "
            "again; if it stays so, write or download it again."
        )


def open_indexed(path: str, file_bytes: int | None = None) -> IndexedShard | None:
    """The shard at `path` with its index; None for a file without one. `file_bytes`: its size, if that is known.

    Raises FileNotFoundError, and DocumentError for a damaged index.
    """
    if compression_of(path) != ".zst":
        return None
    file_bytes = stored_file(path).size_bytes if file_bytes is None else file_bytes
    tail = read_range(path, max(0, file_bytes - TAIL_BYTES), file_bytes)
    needed = index_bytes(tail)
    if not 0 < needed <= file_bytes:
        return None
    if needed > len(tail):
        tail = read_range(path, file_bytes - needed, file_bytes)
    try:
        index = decode_index(tail, file_bytes)
    except DamagedIndexError as error:
        raise DocumentError(
            f"The index at the end of {path!r} is damaged: {error}. Write or download the file again."
        ) from error
    return IndexedShard(path, index, tail, file_bytes) if index else None


def _ranges(frames: Sequence[Frame]) -> Iterator[Sequence[Frame]]:
    """Split neighbouring frames into ranges of at most RANGE_BYTES, or of one frame."""
    first = 0
    for i, frame in enumerate(frames):
        if i > first and frame.end - frames[first].start > RANGE_BYTES:
            yield frames[first:i]
            first = i
    if first < len(frames):
        yield frames[first:]
