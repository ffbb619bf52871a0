"""The tables of tokens: parquet, a row for each text.

id, domain, text        strings
token_ids, ends         lists of int32: of each token its id, and where it ends in the text, in characters
nats                    list of float32: the loss of each token
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from marin_resources.storage.files import open_atomic

ROWS_OF_A_GROUP = 512


def write_tokens(path: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one table atomically, some rows at a time. Return the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("id", "domain", "text")),
            *((name, pa.list_(pa.int32())) for name in ("token_ids", "ends")),
            ("nats", pa.list_(pa.float32())),
        ]
    )
    count, remaining = 0, iter(rows)
    with open_atomic(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(remaining, ROWS_OF_A_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count
