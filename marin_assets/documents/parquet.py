"""Read and write rows of parquet in bounded memory: a few rows of one row group at a time."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from marin_assets.documents.columns import missing_column
from marin_assets.documents.document import BadRow, DocumentError
from marin_assets.documents.jsonl.first_bytes import HEAD_BYTES, require_named
from marin_assets.documents.jsonl.lines import require_expansion
from marin_resources.storage.files import open_atomic, open_to_read

BATCH_ROWS = 16
"""Rows held in memory. 256 would be 16 % faster, but hold 2.5 GB of books."""
NOT_IN_PYTHON = (OverflowError, LookupError, ValueError)
"""Errors of pyarrow for a time beyond Python's years, of an unknown zone, or of nanoseconds without pandas."""
ROW_GROUP_BYTES = 16 * 1024**2
"""Characters of text in a row group that is written."""


def read_parquet(
    path: str, columns: Sequence[str] | None, optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Yield (row number from 1, row), with those of the optional columns that the file has. Raises DocumentError for a
    damaged file or a missing column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = decoded = 0
    with open_to_read(path) as raw:
        require_named(path, raw.read(HEAD_BYTES))
        raw.seek(0)
        try:
            file = pq.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)
            columns = _columns_of(path, file.schema_arrow.names, columns, optional)
            compressed = raw.seek(0, 2)
            require_expansion(path, _largest_chunk(file.metadata), compressed)
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False):
                decoded += batch.nbytes
                require_expansion(path, decoded, compressed)
                for row in _rows_of(batch):
                    number += 1
                    yield number, row
        except (pa.ArrowException, OSError) as error:
            raise DocumentError(
                f"{path!r} is not valid parquet after row {number} ({type(error).__name__}: {error}). "
                "Write or download the file again."
            ) from error


def _largest_chunk(metadata: Any) -> int:
    """Return the decompressed bytes of the largest column chunk. Its pages are decompressed whole."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    return max(
        (group.column(c).total_uncompressed_size for group in groups for c in range(group.num_columns)), default=0
    )


def _rows_of(batch: Any) -> Iterator[dict[str, Any] | BadRow]:
    try:
        yield from batch.to_pylist()
    except (UnicodeDecodeError, *NOT_IN_PYTHON):  # in at least one row: convert the rows one by one
        for index in range(batch.num_rows):
            try:
                yield {name: _value_of(column[index]) for name, column in zip(batch.schema.names, batch, strict=True)}
            except UnicodeDecodeError as error:
                yield BadRow("invalid_utf8", str(error))


def _value_of(scalar: Any) -> Any:
    """A value of parquet in Python; a time that Python cannot hold as a text. Raises UnicodeDecodeError."""
    import pyarrow as pa

    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        raise
    except NOT_IN_PYTHON:
        if isinstance(scalar, pa.StructScalar):
            return {name: _value_of(item) for name, item in scalar.items()}
        if isinstance(scalar, pa.ListScalar | pa.LargeListScalar | pa.FixedSizeListScalar):  # also a map
            return [_value_of(item) for item in scalar.values]
        if isinstance(scalar, pa.DictionaryScalar):
            return _value_of(scalar.value)
        return _moment_of(scalar)


def _moment_of(scalar: Any) -> Any:
    """A date or a time of any year, as ISO 8601 has it; of a zone that is not known here in UTC, as it is stored."""
    import numpy as np
    import pyarrow as pa

    kind = scalar.type
    if pa.types.is_timestamp(kind):
        return str(np.datetime64(scalar.value, kind.unit)) + ("+00:00" if kind.tz else "")
    if pa.types.is_date(kind):
        return str(np.datetime64(scalar.value, "D" if pa.types.is_date32(kind) else "ms").astype("datetime64[D]"))
    if pa.types.is_duration(kind):
        return np.timedelta64(scalar.value, kind.unit)
    raise ValueError(f"a value of the type {kind} cannot be read")


def _columns_of(
    path: str, existing: Sequence[str], required: Sequence[str] | None, optional: Sequence[str]
) -> list[str] | None:
    """The columns to read; None for all. Raises DocumentError for a required one that is missing or exists twice."""
    columns = Counter(existing)
    selected = None if required is None else [*required, *(name for name in optional if name in columns)]
    for column in columns if selected is None else selected:
        if columns[column] > 1:
            raise DocumentError(f"{path!r} has {columns[column]} columns {column!r}, expected one. Rename the others.")
        if column not in existing:
            raise DocumentError(f"{path!r} has {missing_column(column, existing)}. Name one of these.")
    return selected


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
