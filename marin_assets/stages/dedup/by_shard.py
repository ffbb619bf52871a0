"""Fixed-width records of many shards in one file, with an index of the shards beside it.

The global part of a stage writes them once. Its tasks read the records of their own shards.
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
    """Write `<path>.bin`, records of (document, *columns), and `<path>.json`, their index. Return a digest of both.

    `documents` are ascending numbers as in `links`: the index of the shard in `names` times 2^32, plus the row. Raises
    ValueError for a document whose shard has no name.
    """
    import numpy as np
    import xxhash

    bounds = np.searchsorted(documents, np.arange(len(names) + 1, dtype=np.uint64) << np.uint64(32)).tolist()
    if bounds[-1] != len(documents):
        raise ValueError(f"Documents have shard numbers of {len(names)} or more, but only {len(names)} shards exist.")
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
    ranges = dict(zip(names, pairwise(bounds), strict=True))
    write_json(f"{path}.json", {"layout": layout, "shards": ranges})
    return digest.hexdigest()


def read_of_shard(path: str, name: str) -> NDArray[Any]:
    """Return the records of one shard, in order: an array with the field "document" and one for each column."""
    import numpy as np

    index = read_json(f"{path}.json")
    layout = np.dtype([tuple(field) for field in index["layout"]])
    first, end = index["shards"][name]
    if first == end:
        return np.empty(0, layout)
    fs, p = filesystem_of(f"{path}.bin")
    return np.frombuffer(fs.cat_file(p, start=first * layout.itemsize, end=end * layout.itemsize), layout)
