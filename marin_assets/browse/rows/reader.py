"""Pages of rows of a file: at an offset, counted, by id (see `documents/frames/pages.py`), in bounded memory.

A page of `documents` has all its rows in memory. Rows here are those of strangers, and 100 of them may have 6 GB: a
page of very large rows ends early.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from marin_assets.documents.formats import format_of
from marin_assets.documents.frames.index import open_indexed
from marin_assets.documents.frames.pages import FIRST_PAGE_BLOCK_BYTES, Page, Row, count_rows, find_row
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.jsonl.lines import TooLong, read_row_lines
from marin_assets.documents.parquet.read import read_parquet_page

__all__ = ["PAGE_CHARACTERS", "PARQUET", "Page", "Row", "characters_of", "count_rows", "find_row", "read_page"]

PAGE_CHARACTERS = 32 * 1024**2
"""A page ends before its last row if its rows have more than that."""
FIRST_ROWS = 4
"""Rows of parquet that are read first; by their size follows how many more are read at once."""
PARQUET = ".parquet"


def read_page(path: str, *, start: int, count: int, file_bytes: int | None = None) -> Page:
    """At most `count` rows from row `start` on; fewer at the end of the file, and if they are very large.

    `file_bytes`: the size of the file, if that is known: then it is not requested.
    Raises DocumentError for a damaged file.
    """
    if format_of(path) == PARQUET:
        return Page(rows=_parquet_rows(path, start, count), start=start, skipped=False)
    indexed = open_indexed(path, file_bytes)
    if indexed is not None:
        return Page(rows=_rows_of(indexed.lines(start, count)), start=start, skipped=False)
    lines = (line for _, line in read_row_lines(path, None if start else FIRST_PAGE_BLOCK_BYTES))
    return Page(rows=_rows_of(islice(lines, start, start + count)), start=start, skipped=start > 0)


def _rows_of(lines: Iterator[bytes | TooLong]) -> list[Row]:
    parser, rows, size = LineParser(), list[Row](), 0
    for line in lines:
        rows.append(parser.row(line))
        size += len(line) if isinstance(line, bytes) else 0
        if size > PAGE_CHARACTERS:
            break
    return rows


def _parquet_rows(path: str, start: int, count: int) -> list[Row]:
    rows: list[Row] = []
    size, step = 0, min(FIRST_ROWS, count)
    while len(rows) < count and size <= PAGE_CHARACTERS:
        more = read_parquet_page(path, start + len(rows), step)
        rows += more
        if len(more) < step:
            break
        size += sum(map(characters_of, more))
        fitting = (PAGE_CHARACTERS - size) * len(rows) // max(size, 1)
        step = min(count - len(rows), max(fitting, 1))
    return rows


def characters_of(row: Row) -> int:
    """The characters of the texts of a row, without those of nested values."""
    return sum(len(value) for value in row.values() if isinstance(value, str | bytes)) if isinstance(row, dict) else 0
