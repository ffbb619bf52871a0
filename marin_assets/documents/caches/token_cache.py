"""Levanter's token caches, read with tensorstore only; `stages/tokenize/cache.py` describes their files.

Ours, and those that Levanter and Marin write: one array for all rows ("consolidated") or one for each shard
("sharded"), of int32 or int64, with a ledger that may lack the newer fields.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from marin_resources.storage.paths import StoreKind, absolute, is_local, join, kind_of
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import tensorstore as ts

LEDGER = "shard_ledger.json"
FIELD = "input_ids"
READ_CACHE_BYTES = 64 * 1024**2


class CacheError(MarinError, ValueError):
    """The cache cannot be written or read."""


def count_tokens_in(path: str, ledger: Mapping[str, Any]) -> int:
    """Return the tokens of the cache of one split: by its ledger, or by its arrays if the ledger does not have them."""
    counts = {name: count for name, count in (ledger.get("field_counts") or {}).items() if name.endswith(FIELD)}
    if counts or not ledger["total_num_rows"]:
        return sum(counts.values())
    return sum(int(_offsets(part)[rows].read().result()) for part, rows in _parts(path, ledger))


@dataclass(frozen=True)
class SampledRow:
    """A row, or its beginning and its last token."""

    tokens: list[int]
    last: int | None
    is_cut: bool


def sample_rows(path: str, ledger: Mapping[str, Any], *, rows: int, tokens: int) -> Iterator[SampledRow]:
    """Yield at most `rows` rows of a split, evenly spread over it, and of each at most a number of tokens."""
    total = ledger["total_num_rows"]
    sampled = sorted({total * i // rows for i in range(min(rows, total))})
    first = 0
    for part, count in _parts(path, ledger):
        inside = [row - first for row in sampled if first <= row < first + count]
        first += count
        if not inside:
            continue
        offsets, data = _offsets(part), open_array(join(part, FIELD, "data"))
        for row in inside:
            begin, end = (int(offset) for offset in offsets[row : row + 2].read().result())
            begin = begin if row else 0  # the first offset is the number of rows
            beginning = data[begin : min(end, begin + tokens)].read().result().tolist()
            last = int(data[end - 1].read().result()) if end > begin else None
            yield SampledRow(beginning, last, is_cut=end > begin + tokens)


def _parts(path: str, ledger: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The folders with arrays of a split, and the rows of each."""
    if ledger.get("layout") != "sharded":
        return [(path, ledger["total_num_rows"])]
    return [(join(path, name), ledger["shard_rows"][name]) for name in ledger["finished_shards"]]


def _offsets(path: str) -> ts.TensorStore:
    return open_array(join(path, FIELD, "offsets"))


def open_array(path: str) -> ts.TensorStore:
    """Open an array of a cache for reading."""
    import tensorstore as ts  # 0.1 s to import

    from marin_resources.storage.mirror import local_path_of  # 0.4 s to import

    # Without a cache pool, each document read would decompress its chunk again.
    context = ts.Context({"cache_pool": {"total_bytes_limit": READ_CACHE_BYTES}})
    kvstore = kvstore_of(local_path_of(path))
    return ts.open({"driver": "zarr3", "kvstore": kvstore}, open=True, read=True, context=context).result()


def kvstore_of(path: str) -> dict[str, str]:
    """Return tensorstore's spec of the key-value store at `path`."""
    if is_local(path):
        return {"driver": "file", "path": absolute(path) + "/"}
    url, kind = urlparse(path), kind_of(path)
    if kind not in (StoreKind.GCS, StoreKind.S3):
        raise CacheError(
            f"A cache cannot be stored at {path!r}, expected a local path, gs:// or s3://. Change the path."
        )
    place = {"driver": kind.value, "bucket": url.netloc, "path": url.path.lstrip("/") + "/"}
    return {**place, **_s3_settings()} if kind is StoreKind.S3 else place


def _s3_settings() -> dict[str, str]:
    """Return the settings that tensorstore, unlike other S3 clients, does not read from the environment."""
    names = {"endpoint": "AWS_ENDPOINT_URL", "aws_region": "AWS_DEFAULT_REGION"}
    return {setting: os.environ[name] for setting, name in names.items() if os.environ.get(name)}
