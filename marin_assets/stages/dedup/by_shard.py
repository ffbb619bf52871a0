"""Fixed-width records of many shards, packed into one file in the order of the shards.

The global part of a stage writes them once. The tasks of the next phase read the records of their own shards. The
config of each task holds their place: no task reads an index of all shards, and together they read each record once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from marin_resources.storage.files import open_atomic
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK_RECORDS = 1 << 20


class ShardRecordsError(MarinError, ValueError):
    """Records that are not those that were written for a shard."""


@dataclass(frozen=True, kw_only=True)
class ShardRecords:
    """The records of one group of neighbouring shards. Part of a task's config: with other records, it runs again."""

    path: str
    layout: tuple[tuple[str, str], ...]
    """Name and type of each field of a record."""
    bounds: tuple[int, ...]
    """The first record of each shard, and the end of the last one's, as numbers of records in the file."""
    digests: tuple[str, ...]
    """A hash of the records of each shard."""


def write_by_shard(
    path: str, groups: Sequence[int], documents: NDArray[np.uint64], columns: Mapping[str, NDArray[Any]]
) -> list[ShardRecords]:
    """Write records of (document, *columns) to one file. Return the records of each group of shards.

    `groups` are the numbers of shards in each group. `documents` are ascending numbers as in `links`: the index of the
    shard times 2^32, plus the row. Raises ValueError for a document beyond the last shard.
    """
    import numpy as np
    import xxhash

    shards = sum(groups)
    bounds = np.searchsorted(documents, np.arange(shards + 1, dtype=np.uint64) << np.uint64(32)).tolist()
    if bounds[-1] != len(documents):
        raise ValueError(f"Documents have shard numbers of {shards} or more, but only {shards} shards exist.")
    layout = (("document", "<u8"), *((name, column.dtype.newbyteorder("<").str) for name, column in columns.items()))
    digests: list[str] = []
    with open_atomic(path) as out:
        for first, end in pairwise(bounds):
            digest = xxhash.xxh3_64()
            for start in range(first, end, CHUNK_RECORDS):
                part = slice(start, min(start + CHUNK_RECORDS, end))
                records = np.empty(part.stop - part.start, list(layout))
                records["document"] = documents[part]
                for name, column in columns.items():
                    records[name] = column[part]
                data = records.tobytes()
                digest.update(data)
                out.write(data)
            digests.append(digest.hexdigest())
    return [
        ShardRecords(path=path, layout=layout, bounds=tuple(bounds[a : b + 1]), digests=tuple(digests[a:b]))
        for a, b in pairwise([0, *accumulate(groups)])
    ]


def read_by_shard(records: ShardRecords) -> Iterator[NDArray[Any]]:
    """Yield the records of each shard of a group: an array with the field "document" and one for each column.

    Raises ShardRecordsError for other bytes than were written.
    """
    import numpy as np
    import xxhash

    layout = np.dtype(list(records.layout))
    fs, path = filesystem_of(records.path)
    for (first, end), digest in zip(pairwise(records.bounds), records.digests, strict=True):
        data = fs.cat_file(path, start=first * layout.itemsize, end=end * layout.itemsize) if end > first else b""
        if xxhash.xxh3_64_hexdigest(data) != digest:
            raise ShardRecordsError(
                f"Records {first:,} to {end:,} of {records.path!r} are not those that this stage wrote. "
                "Another process works on the same output, or the file is damaged; run the step again."
            )
        yield np.frombuffer(data, layout)
