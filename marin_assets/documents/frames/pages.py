"""Some rows of a file, its number of rows, and the row of an id, without reading the whole file where it allows that.

In:  a file of any format that `read_rows` reads, on any store.   Out: rows, counted from 0 as `read_rows` yields them.

A shard with an index costs one or two frames: on a bucket a request for its size, one for its end, one for the frames.
Parquet costs a row group. Of any other file all rows before the page are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from marin_assets.documents.document import BadRow, DocumentError
from marin_assets.documents.formats import format_of
from marin_assets.documents.frames.id_search import IdSearch
from marin_assets.documents.frames.index import IndexedShard, open_indexed
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.jsonl.lines import read_row_lines
from marin_assets.documents.parquet.read import count_parquet_rows, read_parquet, read_parquet_page
from marin_resources.types.errors import InvalidInputError

FIRST_PAGE_BLOCK_BYTES = 256 * 1024
"""Bytes that one request reads ahead for the first page of a file: the clients' own 5 MiB are more than it has."""

Row = dict[str, Any] | BadRow


class PageError(InvalidInputError):
    """Rows or an id that cannot be requested: one sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """Neighbouring rows of a file."""

    rows: list[Row]
    """As `read_rows` yields them; fewer than requested at the end of the file."""
    start: int
    """The number of the first one, from 0."""
    skipped: bool
    """Whether all rows before them had to be read, as the file has no index."""


def read_page(path: str, *, start: int, count: int) -> Page:
    """The rows from `start` to `start + count - 1`, as far as they exist.

    Raises PageError for a negative number, FileNotFoundError, and DocumentError for a damaged file or one that is not
    of the kind that its name claims.
    """
    _require_number("start", start)
    _require_number("count", count)
    if format_of(path) == ".parquet":
        return Page(rows=read_parquet_page(path, start, count), start=start, skipped=False)
    parser = LineParser()
    indexed = open_indexed(path)
    if indexed is not None:
        return Page(rows=[parser.row(line) for line in indexed.lines(start, count)], start=start, skipped=False)
    lines = read_row_lines(path, None if start else FIRST_PAGE_BLOCK_BYTES)
    rows: list[Row] = [parser.row(line) for _, line in islice(lines, start, start + count)]
    return Page(rows=rows, start=start, skipped=start > 0)


def count_rows(path: str) -> int | None:
    """The number of rows, from the index of a shard or the end of a parquet file; None if it is known by reading alone.

    Raises FileNotFoundError and DocumentError.
    """
    if format_of(path) == ".parquet":
        return count_parquet_rows(path)
    indexed = open_indexed(path)
    return None if indexed is None else indexed.index.rows


def find_row(path: str, id: str) -> int | None:
    """The number, from 0, of the first row with this "id"; None if no row has it.

    By the index of ids if the shard has one. Otherwise the file is read until the id occurs: of parquet that column, of
    lines their bytes. Raises PageError for an id that is no text, FileNotFoundError, and DocumentError.
    """
    if not isinstance(id, str):
        raise PageError(f"The id is {id!r:.80}, expected a text. Ids of other types are not searched.")
    if format_of(path) == ".parquet":
        rows = (row for _, row in read_parquet(path, [], ["id"]))
        return next((i for i, row in enumerate(rows) if _has_id(row, id)), None)
    indexed = open_indexed(path)
    if indexed is not None and indexed.index.ids:
        return _find_by_index(path, indexed, id)
    search, lines = IdSearch(id), (line for _, line in read_row_lines(path))
    return next((i for i, line in enumerate(lines) if search.is_in(line)), None)


def _find_by_index(path: str, indexed: IndexedShard, id: str) -> int | None:
    parser, candidates = LineParser(), indexed.rows_of_id(id)
    for row in candidates:
        if any(_has_id(parser.row(line), id) for line in indexed.lines(row, 1)):
            return row
    if candidates:
        raise DocumentError(
            f"The index of {path!r} names row {candidates[0]} for the id {id!r:.200}, and that row has another id. The "
            "file is damaged: write or download it again."
        )
    return None


def _has_id(row: Row, id: str) -> bool:
    return isinstance(row, dict) and row.get("id") == id


def _require_number(name: str, value: object) -> None:
    if type(value) is not int or value < 0:
        raise PageError(f"{name} is {value!r:.80}, expected a whole number from 0.")
