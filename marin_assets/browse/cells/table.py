"""The rows of a page as a table of short texts; the columns that have no room are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marin_assets.browse.cells.short_text import ShortText, short_text, visible
from marin_assets.documents.document import BadRow
from marin_assets.documents.frames.pages import Row

MOST_COLUMNS = 24
ROW_CHARACTERS = 3000
"""Characters of the cells of a row together: a page of 100 rows stays below 2 MB if each takes five bytes."""
CELL_CHARACTERS = 300
COLUMN_CHARACTERS = 60
NAMED = 12
FIRST = ("id", "keep", "used", "reason", "value", "reward", "lesson", "step", "text", "source", "metadata")
"""Columns that come first, in this order."""
LOOKED_AT = 2000
"""Limit on the keys of a row that are read."""


@dataclass(frozen=True, kw_only=True)
class TableRow:
    number: int
    """From 0."""
    cells: list[ShortText | None]
    """None: the row does not have the column."""
    bad: ShortText | None = None
    """The reason why the line is no row."""


@dataclass(frozen=True, kw_only=True)
class Table:
    columns: list[str]
    rows: list[TableRow]
    left_out: str
    """The columns without room, as a phrase; empty if none."""
    cut_cells: int


def table_of(rows: Sequence[tuple[int, Row]]) -> Table:
    """The table of (number, row) pairs."""
    keys: dict[str, None] = {}
    for _, row in rows:
        if not isinstance(row, BadRow):
            keys.update(dict.fromkeys(key for key, _ in zip(row, range(LOOKED_AT), strict=False)))
    ordered = [key for key in FIRST if key in keys] + [key for key in keys if key not in FIRST]
    columns, others = ordered[:MOST_COLUMNS], ordered[MOST_COLUMNS:]
    characters = min(CELL_CHARACTERS, ROW_CHARACTERS // max(len(columns), 1))
    shown = [_row(number, row, columns, characters) for number, row in rows]
    return Table(
        columns=[_name(column) for column in columns],
        rows=shown,
        left_out=_phrase(others),
        cut_cells=sum(cell is not None and cell.is_cut for row in shown for cell in row.cells),
    )


def _row(number: int, row: Row, columns: Sequence[str], characters: int) -> TableRow:
    if isinstance(row, BadRow):
        return TableRow(number=number, cells=[], bad=short_text(f"{row.reason}: {row.detail}", CELL_CHARACTERS))
    cells = [short_text(row[column], characters) if column in row else None for column in columns]
    return TableRow(number=number, cells=cells)


def _name(column: str) -> str:
    return visible(column[:COLUMN_CHARACTERS]) + "…" * (len(column) > COLUMN_CHARACTERS)


def _phrase(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - NAMED:,} more" if len(columns) > NAMED else ""
    return ", ".join(map(_name, columns[:NAMED])) + more
