"""Pages of rows of a file: at an offset, counted, by id. Rows are numbered from 0.

A row group of parquet is reached at once, by the file's footer. In a file of lines all rows before the page are
decompressed, which the page reports: they are not parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marin_assets.browse.rows.lines import row_lines, spellings_of
from marin_assets.documents.document import BadRow, DocumentError
from marin_assets.documents.formats import format_of
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.jsonl.lines import require_expansion
from marin_assets.documents.rows import read_rows
from marin_resources.storage.files import open_to_read

PAGE_CHARACTERS = 32 * 1024**2
"""A page ends before its last row if its rows have more than that: 100 rows of 60 MB would not fit into memory."""
ID = "id"
PARQUET = ".parquet"

Row = dict[str, Any] | BadRow


@dataclass(frozen=True, kw_only=True)
class Page:
    """Rows that follow each other."""

    rows: tuple[Row, ...]
    """Fewer than requested at the end of the file, and if they are very large."""
    start: int
    """Number of the first row."""
    skipped: int
    """Rows before it that had to be decompressed."""


def read_page(path: str, *, start: int, count: int) -> Page:
    """At most `count` rows from row `start` on. Raises DocumentError for a damaged file."""
    rows: list[Row] = []
    size = skipped = 0
    if format_of(path) == PARQUET:
        numbered = _parquet_rows(path, start)
    else:
        numbered, skipped = _line_rows(path, start), start
    for _, row, characters in numbered:
        rows.append(row)
        size += characters
        if len(rows) == count or size > PAGE_CHARACTERS:
            break
    return Page(rows=tuple(rows), start=start, skipped=skipped)


def count_rows(path: str) -> int | None:
    """The rows of a file, if that is known without reading them. Raises DocumentError for a damaged footer."""
    if format_of(path) != PARQUET:
        return None
    with open_to_read(path) as raw:
        return int(_parquet_file(path, raw).metadata.num_rows)


def find_row(path: str, id: str) -> int | None:
    """The number of the first row with this id; None if no row has it. Raises DocumentError for a damaged file."""
    if format_of(path) == PARQUET:
        columns = _names_of(path)
        rows = read_rows(path, [ID]) if ID in columns else iter(())
        return next((number - 1 for number, row in rows if isinstance(row, dict) and row.get(ID) == id), None)
    parser, spellings = LineParser(), spellings_of(id)
    for number, line in row_lines(path):
        if isinstance(line, bytes) and any(spelling in line for spelling in spellings):
            row = parser.row(line)
            if isinstance(row, dict) and row.get(ID) == id:
                return number
    return None


def _line_rows(path: str, start: int) -> Iterator[tuple[int, Row, int]]:
    """(number, row, characters) from row `start` on."""
    parser = LineParser()
    for number, line in row_lines(path):
        if number >= start:
            yield number, parser.row(line), len(line) if isinstance(line, bytes) else 0


def _parquet_file(path: str, raw: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise DocumentError(
            f"{path!r} is not valid parquet ({type(error).__name__}: {error}). Write or download the file again."
        ) from error


def _names_of(path: str) -> list[str]:
    with open_to_read(path) as raw:
        return list(_parquet_file(path, raw).schema_arrow.names)


def _parquet_rows(path: str, start: int) -> Iterator[tuple[int, Row, int]]:
    """As `_line_rows`: the row groups before that of the first row are not read."""
    import pyarrow as pa

    from marin_assets.documents.parquet import BATCH_ROWS, _largest_chunk, _rows_of

    with open_to_read(path) as raw:
        file = _parquet_file(path, raw)
        require_expansion(path, _largest_chunk(file.metadata), raw.seek(0, 2))
        first, groups = _groups_from(file.metadata, start)
        try:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, row_groups=groups, use_threads=False):
                if first + batch.num_rows > start:
                    part = batch.slice(max(start - first, 0))
                    for index, row in enumerate(_rows_of(part)):
                        yield max(first, start) + index, row, part.nbytes // part.num_rows
                first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise DocumentError(
                f"{path!r} is not valid parquet after row {first} ({type(error).__name__}: {error}). "
                "Write or download the file again."
            ) from error


def _groups_from(metadata: Any, start: int) -> tuple[int, list[int]]:
    """The number of the first row of the row group that has row `start`, and that group with all behind it."""
    first = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if first + rows > start:
            return first, list(range(group, metadata.num_row_groups))
        first += rows
    return first, []
