"""Write rows of parquet in bounded memory, in groups of about 16 MiB of text."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from marin_assets.documents.document import DocumentError
from marin_resources.storage.files import open_atomic

ROW_GROUP_BYTES = 16 * 1024**2
"""Characters of text in a row group that is written."""


def write_parquet(path: str, rows: Iterable[Mapping[str, Any]], *, replace: bool = True) -> int:
    """Write text, numbers and booleans as they are, mappings and lists as JSON text. Return the number of rows.

    The columns are those of all rows, each with the type that fits all its values. The types are known only at the
    end, so groups of rows are held in a temporary file. Raises DocumentError for values that parquet cannot hold.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas, starts, count = [], [], 0
    with tempfile.TemporaryFile() as spool, open_atomic(path, replace=replace) as raw:
        try:
            for group in _row_groups(rows):
                names = list(dict.fromkeys(name for row in group for name in row))
                table = pa.table({name: [row.get(name) for row in group] for name in names})
                starts.append(spool.tell())
                with pa.ipc.new_stream(spool, table.schema) as stream:
                    stream.write_table(table)
                schemas.append(table.schema)
                count += len(group)
            schema = pa.unify_schemas(schemas or [_no_rows()], promote_options="permissive")
            with pq.ParquetWriter(raw, schema, compression="zstd", version="2.6", write_page_checksum=True) as writer:
                for start in starts:
                    spool.seek(start)
                    table = pa.ipc.open_stream(spool).read_all()
                    writer.write_table(pa.concat_tables([schema.empty_table(), table], promote_options="permissive"))
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise DocumentError(
                f"Rows of {path!r} cannot be written as parquet ({type(error).__name__}: {error}). Expected whole "
                "characters and columns of one type each; JSONL takes any."
            ) from error
    return count


def _no_rows() -> Any:
    import pyarrow as pa

    return pa.schema([("id", pa.string()), ("text", pa.string())])


def _row_groups(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        flat = {key: json.dumps(v, ensure_ascii=False) if isinstance(v, dict | list) else v for key, v in row.items()}
        group.append(flat)
        size += sum(len(v) for v in flat.values() if isinstance(v, str))
        if size >= ROW_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
