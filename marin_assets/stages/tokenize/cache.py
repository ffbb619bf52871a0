"""Levanter's token caches, written and read with tensorstore only.

    <cache>/<split>/shard_ledger.json           names of the shards below it ("sharded" layout: nothing is copied)
    <cache>/<split>/<shard>/shard_ledger.json   number of documents and tokens, digest of the tokenizer
    <cache>/<split>/<shard>/input_ids/data      int32 (tokens,): the documents, concatenated
    <cache>/<split>/<shard>/input_ids/offsets   int64 (documents + 1,): number of documents, then the end of each
    <cache>/<split>/<shard>/names.json          {"ids", "pages"}: of each document, in the same order

A cache of chats has further fields beside `input_ids`, each with data and offsets of its own.

`import levanter` would take 3 s and 350 MB in every process that tokenizes; the caches are identical row for row.
The format is that of `levanter.store` (marin-levanter 0.2.20): zarr3, blosc.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from marin_assets.documents.caches.token_cache import FIELD, LEDGER, kvstore_of, open_array
from marin_resources.storage.files import exists, read_json, write_bytes, write_json
from marin_resources.storage.paths import absolute, is_local, join

if TYPE_CHECKING:
    import numpy as np

NAMES = "names.json"
STATS = ".stats.json"
CHUNK = 256 * 1024
"""Elements of a compressed chunk: 1 MiB of int32, as in Levanter."""
CHUNKS_PER_FILE = 512


@dataclass
class Names:
    """Ids and pages of the documents of one shard, in order."""

    ids: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)


def write_shard(path: str, tokens: np.ndarray, ends: np.ndarray, names: Names, metadata: Mapping[str, Any]) -> None:
    """Write one shard of documents: `write_rows` with the one field input_ids."""
    write_rows(path, {FIELD: (tokens, ends)}, names, metadata)


def write_rows(
    path: str, fields: Mapping[str, tuple[np.ndarray, np.ndarray]], names: Names, metadata: Mapping[str, Any]
) -> None:
    """Write one shard, which appears at `path` by a rename (in a bucket: by its ledger, which is written last).

    `fields` has the values of all rows, int32 (values,), and the end of each row in them, int64 (rows,). In a bucket, a
    finished shard is never overwritten: raises FileExistsError if its ledger differs.
    """
    name = os.path.basename(path)
    [rows] = {len(ends) for _, ends in fields.values()}
    counts = {name: {field: len(values) for field, (values, _) in fields.items()}}
    ledger = _ledger({name: rows}, counts, metadata, layout="consolidated")
    if not is_local(path):
        _write_parts(path, fields, names, ledger)
        return
    final = absolute(path)
    place = join(os.path.dirname(final), f".{name}.tmp")
    for leftover in (final, place):
        shutil.rmtree(leftover, ignore_errors=True)
    _write_parts(place, fields, names, ledger)
    os.rename(place, final)


def _write_parts(
    path: str, fields: Mapping[str, tuple[np.ndarray, np.ndarray]], names: Names, ledger: Mapping[str, Any]
) -> None:
    """Write the files of a shard. It removes nothing, so a stale writer cannot delete another writer's files."""
    import numpy as np  # 0.1 s to import

    if not exists(join(path, LEDGER)):
        for field_name, (values, ends) in fields.items():
            _write_array(join(path, field_name, "data"), values)
            _write_array(join(path, field_name, "offsets"), np.concatenate([[len(ends)], ends]).astype(np.int64))
        write_bytes(join(path, NAMES), json.dumps({"ids": names.ids, "pages": names.pages}).encode())
    write_json(join(path, LEDGER), ledger, replace=False)


def write_split(path: str, shards: Sequence[str], metadata: Mapping[str, Any]) -> dict[str, int]:
    """Write the ledger of all shards of one split, and Marin's `.stats.json`. Returns {"tokens", "documents"}.

    Tokens are the values of all fields whose names end with input_ids. Shards without rows of this split are left out.
    """
    rows: dict[str, int] = {}
    counts: dict[str, dict[str, int]] = {}
    for name in shards:
        shard = read_json(join(path, name, LEDGER))
        if not shard["total_num_rows"]:
            continue
        rows[name], counts[name] = shard["total_num_rows"], shard["field_counts"]
    ledger = _ledger(rows, counts, metadata, layout="sharded")
    tokens = sum(count for name, count in ledger["field_counts"].items() if name.endswith(FIELD))
    documents = ledger["total_num_rows"]
    write_json(join(path, STATS), {"total_tokens": tokens, "total_elements": documents})
    write_json(join(path, LEDGER), ledger)
    return {"tokens": tokens, "documents": documents}


def read_documents_of(path: str, indices: Sequence[int], field_name: str = FIELD) -> list[np.ndarray]:
    """Return the stored tokens, or another field, of some rows of the shard at `path`."""
    data, offsets = open_array(join(path, field_name, "data")), open_array(join(path, field_name, "offsets"))
    number = int(offsets[0].read().result())
    ends = offsets[: number + 1].read().result()
    ends[0] = 0
    return [data[int(ends[i]) : int(ends[i + 1])].read().result() for i in indices]


def read_names(split_path: str, shards: Sequence[str]) -> Iterator[Names]:
    """Yield the ids and pages of the documents of a split, shard for shard."""
    return (Names(**read_json(join(split_path, shard, NAMES))) for shard in shards)


def _ledger(
    rows: dict[str, int], counts: dict[str, dict[str, int]], metadata: Mapping[str, Any], *, layout: str
) -> dict[str, Any]:
    names = list(next(iter(counts.values()), {FIELD: 0}))
    return {
        "total_num_rows": sum(rows.values()),
        "shard_rows": rows,
        "is_finished": True,
        "finished_shards": list(rows),
        "field_counts": {name: sum(count[name] for count in counts.values()) for name in names},
        "field_counts_by_shard": counts if layout == "sharded" else {},
        "layout": layout,
        "metadata": {"preprocessor_metadata": dict(metadata)},
    }


def _write_array(path: str, values: np.ndarray) -> None:
    import tensorstore as ts  # 0.1 s to import

    codecs = [{"name": "blosc", "configuration": {"clevel": 5}}]
    sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": [CHUNK], "codecs": codecs}}
    grid = {"name": "regular", "configuration": {"chunk_shape": [CHUNK * CHUNKS_PER_FILE]}}
    # Levanter's shape: it appends to the array, and the offsets record which part is in use.
    metadata = {"data_type": values.dtype.name, "shape": [2**54], "chunk_grid": grid, "codecs": [sharding]}
    spec = {"driver": "zarr3", "kvstore": kvstore_of(path), "metadata": metadata}
    ts.open(spec, create=True, open=True).result()[: len(values)].write(values).result()
