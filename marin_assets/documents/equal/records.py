"""Files of fixed-width records in partitions, which one phase of a global decision writes for the next.

    run | run | ... | index | trailer

A run is as many records as are held in memory, sorted by partition. The index holds the start of each partition in each
run (as a number of records from the beginning of the file), so reading one partition takes one read for each run. The
trailer describes the file and is checked on every read: a truncated file, or a file of another kind, is an error and
never yields a part of a partition.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from marin_resources.storage.files import StoredFile, open_atomic
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

RUN_RECORDS = 1 << 20
"""Records held in memory: 24 MB of hashes."""
MAGIC = b"MRNREC01"
TRAILER = struct.Struct("<8sIIIIQ")
"""MAGIC, bytes of a record, partitions, runs, 0, records."""
OFFSET_BYTES = 8


class RecordsError(MarinError, ValueError):
    """A record file that is damaged or of another kind."""


def write_records(path: str, blocks: Iterable[Array], partitions: int, partition_of: Callable[[Array], Array]) -> int:
    """Write one file atomically. Return the number of records.

    Each block, of any number of records of one dtype, becomes a run. `partition_of(block)` returns the partition of
    each record, from 0 to `partitions` - 1.
    """
    import numpy as np

    index: list[Array] = []
    records = record_bytes = 0
    with open_atomic(path, replace=False) as out:
        for block in blocks:
            where = partition_of(block)
            order = np.argsort(where, kind="stable")
            starts = np.searchsorted(where[order], np.arange(partitions + 1))
            out.write(block[order].tobytes())
            index.append((starts + records).astype("<u8"))
            records, record_bytes = records + len(block), block.dtype.itemsize
        for offsets in index:
            out.write(offsets.tobytes())
        out.write(TRAILER.pack(MAGIC, record_bytes, partitions, len(index), 0, records))
    return records


def read_records(file: StoredFile, dtype: np.dtype[Any], first: int, end: int, partitions: int) -> Iterator[Array]:
    """Yield the records of partitions first .. end - 1, run by run. Raises RecordsError."""
    import numpy as np

    runs, records = _trailer(file, dtype.itemsize, partitions)
    index_start = records * dtype.itemsize
    for run in range(runs):
        at = index_start + (run * (partitions + 1) + first) * OFFSET_BYTES
        offsets = np.frombuffer(_read(file, at, (end - first + 1) * OFFSET_BYTES), "<u8").astype(int)
        start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
        if np.any(np.diff(offsets) < 0) or start + length > records:
            raise _damaged(file, f"the index of run {run} is out of order")
        if length:
            yield np.frombuffer(_read(file, start * dtype.itemsize, length * dtype.itemsize), dtype)


def in_runs(blocks: Iterable[Array], records: int = RUN_RECORDS) -> Iterator[Array]:
    """Join small blocks to runs of at least `records` records; the last run may be smaller."""
    import numpy as np

    held: list[Array] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += len(block)
        if count >= records:
            yield np.concatenate(held)
            held, count = [], 0
    if held:
        yield np.concatenate(held)


def record_name(index: int) -> str:
    """Return the name of a phase's file: it is not in the listing, which so takes some bytes for each file."""
    return f"{index:06d}.bin"


def record_listing(files: Sequence[StoredFile]) -> dict[str, Any]:
    """Return what the next phase needs of a phase's files, in their order, and a digest of their state."""
    state = repr([(file.name, file.size_bytes, file.stamp) for file in files])
    return {"sizes": [file.size_bytes for file in files], "state": hashlib.sha256(state.encode()).hexdigest()}


def listed_records(path: str, listing: Mapping[str, Any]) -> list[StoredFile]:
    """Return the files of a `record_listing` stored at `path`: "records.json" lists those in "records"."""
    folder = path.removesuffix(".json")
    return [
        StoredFile(path=join(folder, record_name(i)), name=record_name(i), size_bytes=size, stamp="")
        for i, size in enumerate(listing["sizes"])
    ]


def _trailer(file: StoredFile, record_bytes: int, partitions: int) -> tuple[int, int]:
    if file.size_bytes < TRAILER.size:
        raise _damaged(file, f"it has {file.size_bytes} bytes")
    tail = _read(file, file.size_bytes - TRAILER.size, TRAILER.size)
    magic, found_bytes, found_partitions, runs, _, records = TRAILER.unpack(tail)
    if magic != MAGIC or found_partitions != partitions or (records and found_bytes != record_bytes):
        raise _damaged(file, f"it ends in {tail!r}")
    expected = records * record_bytes + runs * (partitions + 1) * OFFSET_BYTES + TRAILER.size
    if expected != file.size_bytes:
        raise _damaged(file, f"it has {file.size_bytes:,} bytes where {records:,} records take {expected:,}")
    return runs, records


def _read(file: StoredFile, start: int, length: int) -> bytes:
    fs, path = filesystem_of(file.path)
    data: bytes = fs.cat_file(path, start=start, end=start + length)
    if len(data) != length:
        raise _damaged(file, f"it has {len(data):,} of {length:,} bytes from byte {start:,} on")
    return data


def _damaged(file: StoredFile, damage: str) -> RecordsError:
    return RecordsError(f"{file.path!r} is not a complete record file: {damage}. Remove it and run the step again.")
