"""Read rows of parquet in bounded memory: a few rows of one row group at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from marin_assets.documents.document import BadRow, DocumentError
from marin_assets.documents.jsonl.first_bytes import HEAD_BYTES, require_named
from marin_assets.documents.jsonl.lines import require_expansion
from marin_assets.documents.parquet.columns import missing_column
from marin_resources.storage.files import open_to_read

BATCH_ROWS = 16
"""Rows held in memory. 256 would be 16 % faster, but hold 2.5 GB of books."""
NOT_IN_PYTHON = (OverflowError, LookupError, ValueError)
"""Errors of pyarrow for a time beyond Python's years, of an unknown zone, or of nanoseconds without pandas."""


def read_parquet(
    path: str, columns: Sequence[str] | None, optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Yield (row number from 1, row), with those of the optional columns that the file has. Raises DocumentError for a
    damaged file or a missing column."""
    with _opened(path) as opened:
        columns = _columns_of(path, opened.file.schema_arrow.names, columns, optional)
        for row in opened.rows(columns):
            opened.number += 1
            yield opened.number, row


def read_parquet_page(path: str, start: int, count: int) -> list[dict[str, Any] | BadRow]:
    """The rows from `start`, counted from 0, to `start + count - 1`, as far as they exist.

    Only their row groups are read, by requests of 1 MiB at most. Raises DocumentError.
    """
    with _opened(path, block_bytes=0) as opened:
        metadata, groups, first, end = opened.file.metadata, [], 0, 0
        for group in range(metadata.num_row_groups):
            group_rows = metadata.row_group(group).num_rows
            if end + group_rows <= start:
                first += group_rows
            elif end < start + count:
                groups.append(group)
            end += group_rows
        opened.number = first
        columns = _columns_of(path, opened.file.schema_arrow.names, None, ())
        rows = opened.rows(columns, groups, start - first) if groups else iter(())
        return list(islice(rows, count))


def read_chosen_parquet(path: str, numbers: Sequence[int]) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Yield (number from 0, row) of the rows with these numbers, which are in order, as far as they exist.

    A row group without one of them is not read, and other rows are not converted. Raises DocumentError.
    """
    with _opened(path) as opened:
        first, place = 0, 0
        for group in range(opened.file.metadata.num_row_groups):
            end = first + opened.file.metadata.row_group(group).num_rows
            stop = bisect_left(numbers, end, place)
            if place < stop:
                chosen = [number - first for number in numbers[place:stop]]
                for number, row in opened.chosen_rows(group, chosen):
                    opened.number = first + number
                    yield first + number, row
            first, place = end, stop


def count_parquet_rows(path: str) -> int:
    """The number of rows, from the end of the file. Raises DocumentError."""
    with _opened(path, block_bytes=0) as opened:
        return int(opened.file.metadata.num_rows)


@dataclass
class _Opened:
    """An open file of parquet."""

    path: str
    file: Any
    compressed: int
    """Bytes of the file."""
    number: int = 0
    """The last row that was read, for the sentence of an error."""

    def rows(self, columns: Sequence[str] | None, groups: Sequence[int] | None = None, skip: int = 0) -> Iterator[Any]:
        """Yield the rows of the row groups, by default of all, without the first `skip` rows."""
        decoded = 0
        for batch in self.file.iter_batches(
            batch_size=BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False
        ):
            decoded += batch.nbytes
            require_expansion(self.path, decoded, self.compressed)
            if skip < batch.num_rows:
                yield from _rows_of(batch.slice(skip))
            skip = max(skip - batch.num_rows, 0)

    def chosen_rows(self, group: int, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
        """Yield (number in the row group, row) of the chosen ones, which are in order."""
        first, place = 0, 0
        for batch in self.file.iter_batches(batch_size=BATCH_ROWS, row_groups=[group], use_threads=False):
            require_expansion(self.path, batch.nbytes, self.compressed)
            stop = bisect_left(numbers, first + batch.num_rows, place)
            if stop - place == batch.num_rows:
                yield from enumerate(_rows_of(batch), start=first)
            else:
                for number in numbers[place:stop]:
                    yield number, next(_rows_of(batch.slice(number - first, 1)))
            first, place = first + batch.num_rows, stop


@contextmanager
def _opened(path: str, block_bytes: int | None = None) -> Iterator[_Opened]:
    """Errors of pyarrow in the block are DocumentErrors."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    opened = None
    with open_to_read(path, block_bytes=block_bytes) as raw:
        require_named(path, raw.read(HEAD_BYTES))
        raw.seek(0)
        try:
            file = pq.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)
            opened = _Opened(path=path, file=file, compressed=raw.seek(0, 2))
            require_expansion(path, _largest_chunk(file.metadata), opened.compressed)
            yield opened
        except (pa.ArrowException, OSError) as error:
            raise DocumentError(
                f"{path!r} is not valid parquet after row {opened.number if opened else 0} "
                f"({type(error).__name__}: {error}). Write or download the file again."
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
