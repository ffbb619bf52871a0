"""The rows of another file that have the ids of the rows of a page.

In:  the ids of a page, and the number of its first row.   Out: for each the row of the other file, if it has one.

Attributes are in the order of their documents, so the same numbers are read first, and their ids compared. A stage
that drops rows breaks that order: there the ids are searched in the index of the shard, or in a small file without
one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.browse.rows.lines import row_lines
from marin_assets.browse.rows.reader import PARQUET, Row, read_page
from marin_assets.browse.rows.sample import rows_at
from marin_assets.documents.formats import format_of
from marin_assets.documents.frames.index import open_indexed
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.parquet.read import read_parquet
from marin_resources.storage.files import stored_file

MOST_SEARCHED_BYTES = 16 * 1024**2
"""Size of a file without an index of ids up to which its rows are read, one by one, in search of ids."""

NumberedRow = tuple[int, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RowsBeside:
    rows: list[NumberedRow | None]
    """For each id the number and the content of its row in the other file."""
    by_number_alone: bool = False
    """Ids without a row were not searched in the rest of the file: it has no index of ids, and is large."""


def rows_beside(path: str, start: int, ids: Sequence[str | None]) -> RowsBeside:
    """The rows of a file that have these ids, which are those of the rows from `start` on of another file.

    An id that several rows have is that of the row with the same number, else of the first. Rows after PAGE_CHARACTERS
    are left out. Raises FileNotFoundError, and DocumentError for a damaged file.
    """
    rows: list[NumberedRow | None] = [None] * len(ids)
    for place, row in enumerate(read_page(path, start=start, count=len(ids)).rows):
        if ids[place] is not None and isinstance(row, dict) and row.get("id") == ids[place]:
            rows[place] = (start + place, row)
    missing = {id for id, row in zip(ids, rows, strict=True) if row is None and id is not None}
    numbers = _numbers_of(path, missing) if missing else []
    if numbers is None:
        return RowsBeside(rows=rows, by_number_alone=True)
    by_id: dict[str, NumberedRow] = {}
    for number, row in rows_at(path, numbers).items():
        if isinstance(row, dict) and row.get("id") in missing:
            by_id.setdefault(row["id"], (number, row))
    return RowsBeside(rows=[row or by_id.get(id or "") for id, row in zip(ids, rows, strict=True)])


def _numbers_of(path: str, ids: Collection[str]) -> list[int] | None:
    """The numbers of the rows that may have these ids, in order; None if too much had to be read to know them."""
    indexed = None if format_of(path) == PARQUET else open_indexed(path)
    if indexed is not None and indexed.index.ids:
        return sorted({number for rows in indexed.rows_of_ids(sorted(ids)).values() for number in rows})
    if stored_file(path).size_bytes > MOST_SEARCHED_BYTES:
        return None
    return [number for number, row in _rows_with_ids(path) if isinstance(row, dict) and row.get("id") in ids]


def _rows_with_ids(path: str) -> Iterator[tuple[int, Row]]:
    if format_of(path) == PARQUET:
        yield from enumerate(row for _, row in read_parquet(path, [], ["id"]))
        return
    parser = LineParser()
    for number, line in row_lines(path):
        yield number, parser.row(line)
