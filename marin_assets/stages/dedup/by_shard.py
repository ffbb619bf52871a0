"""Fixed-width records of many shards in one file, and beside it where each shard's lie.

Written by a stage's global part, once; read by the tasks that each need the records of their own shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from marin_resources.storage.files import open_atomic, read_json, write_json
from marin_resources.storage.filesystem import filesystem_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK_RECORDS = 1 << 20


def write_by_shard(
    path: str, names: Sequence[str], documents: NDArray[np.uint64], columns: Mapping[str, NDArray[Any]]
) -> str:
    """Write `<path>.bin`, records of (document, *columns), and `<path>.json`, where they lie. Returns a digest of both.

    `documents` ascend and are numbers as in `links`: the index of a name times 2^32, plus the row. Raises ValueError
    for one whose shard has no name.
    """
    import numpy as np
    import xxhash

    bounds = np.searchsorted(documents, np.arange(len(names) + 1, dtype=np.uint64) << np.uint64(32)).tolist()
    if bounds[-1] != len(documents):
        raise ValueError(f"There are documents of shards from {len(names)} on, and only {len(names)} shards.")
    layout = [["document", "<u8"], *([name, column.dtype.newbyteorder("<").str] for name, column in columns.items())]
    digest = xxhash.xxh3_128(repr((list(names), bounds, layout)).encode())
    with open_atomic(f"{path}.bin") as out:
        for start in range(0, len(documents), CHUNK_RECORDS):
            part = slice(start, start + CHUNK_RECORDS)
            records = np.empty(len(documents[part]), [tuple(field) for field in layout])
            records["document"] = documents[part]
            for name, column in columns.items():
                records[name] = column[part]
            digest.update(records.tobytes())
            out.write(records.tobytes())
    places = dict(zip(names, pairwise(bounds), strict=True))
    write_json(f"{path}.json", {"layout": layout, "shards": places})
    return digest.hexdigest()


def read_of_shard(path: str, name: str) -> NDArray[Any]:
    """The records of one shard, in order: an array with the fields "document" and the columns'."""
    import numpy as np

    told = read_json(f"{path}.json")
    layout = np.dtype([tuple(field) for field in told["layout"]])
    first, end = told["shards"][name]
    if first == end:
        return np.empty(0, layout)
    fs, p = filesystem_of(f"{path}.bin")
    return np.frombuffer(fs.cat_file(p, start=first * layout.itemsize, end=end * layout.itemsize), layout)
