"""Tables of marked minimal HTML as Markdown tables (GitHub's), with as many cells in each row as the widest row has.

A cell that spans rows or columns is repeated in each of them, as `pandas.read_html` does, so no cell is empty that is
not empty on the page. Two stand once, before empty cells: a header that spans columns, and a cell as wide as its table.
A table that only arranges a page stays text: its cells follow one another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby

from marin_assets.stages.transform.html.html_marks import BLOCK, CELL, DROPPED, MAX_COLSPAN, MAX_ROWSPAN

HEADING = re.compile("<h[1-6]>")
INSIDE = re.compile("<br>|<p>|<li>")
MAX_CELL, MAX_CELL_WITHOUT_HEADERS = 5000, 1000
"""Characters of a cell. A longer one holds a part of the page, not data; beside headers if it is half of its table."""
MAX_GROWTH, GROWTH_IS_LIMITED_FROM = 20, 100_000
"""Cells, and characters, of a Markdown table for each of the page's. One row of 100,000 cells over 100,000 short rows
would take gigabytes."""


@dataclass(kw_only=True, eq=False)
class Cell:
    kind: str
    row: int
    columns: int
    rows: int
    parts: list[str] = field(default_factory=list)

    @property
    def minimal(self) -> str:
        return "".join(self.parts)

    @property
    def is_filled(self) -> bool:
        return bool(re.sub(r"<[^<>]*>", "", self.minimal).strip())


@dataclass
class Table:
    number: int
    cells: list[Cell] = field(default_factory=list)
    has_layout: bool = False
    """Whether a layout table is in one of its cells."""

    @property
    def rows(self) -> list[list[Cell]]:
        return [list(cells) for _, cells in groupby(self.cells, key=lambda cell: cell.row)]


class Tables:
    """One pass over the marks of a page's cells.

    `cell_text` returns a cell's minimal HTML as one line. `keep` takes a Markdown table and the same table in one line,
    and returns what stands for it in the text.
    """

    def __init__(self, cell_text: Callable[[str], str], keep: Callable[[str, str], str]) -> None:
        self.cell_text, self.keep = cell_text, keep
        self.parts: list[str] = []
        self.open: list[Table] = []
        self.numbers: set[int] = set()

    def replaced(self, minimal: str) -> str:
        """Return marked minimal HTML in which something stands for each table."""
        done = 0
        for match in CELL.finditer(minimal):
            self.write(minimal[done : match.start()])
            done = match.end()
            number = int(match[1] or match[6])
            if number in self.numbers:
                self.close_to(number)
                if match[6]:
                    self.close()
            elif match[1]:
                self.open.append(Table(number))
                self.numbers.add(number)
            if match[6]:
                self.write(DROPPED)
            else:
                columns, rows = min(int(match[4]), MAX_COLSPAN), min(int(match[5]), MAX_ROWSPAN)
                self.open[-1].cells.append(Cell(kind=match[3], row=int(match[2]), columns=columns, rows=rows))
        self.write(minimal[done:])
        while self.open:
            self.close()
        return "".join(self.parts)

    def write(self, text: str) -> None:
        (self.open[-1].cells[-1].parts if self.open else self.parts).append(text)

    def close_to(self, number: int) -> None:
        while self.open[-1].number != number:
            self.close()

    def close(self) -> None:
        table = self.open.pop()
        self.numbers.remove(table.number)
        rows = None if is_layout(table) else rows_of(table, self.cell_text)
        if rows is None:
            self.write("".join(DROPPED + cell.minimal for cell in table.cells))
            if self.open:
                self.open[-1].has_layout = True
        else:
            line = "; ".join(", ".join(filter(None, row)) for row in rows)
            self.write(self.keep(markdown_table(rows, has_header(table)), line))


def is_layout(table: Table) -> bool:
    """Whether a table only arranges a page.

    Such a table has one column of text, a heading or a long text in a cell, or no headers and either code, another
    table or a single row of several lines.
    """
    if table.has_layout or any(cell.kind == "p" for cell in table.cells):
        return True
    rows = table.rows
    if not any(sum(cell.is_filled for cell in row) > 1 for row in rows):
        return True
    if any(cell.kind == "d" and HEADING.search(cell.minimal) for cell in table.cells):
        return True
    has_headers = any(cell.kind == "h" for cell in table.cells)
    lengths = [len(cell.minimal) for cell in table.cells]
    if max(lengths) > (max(MAX_CELL, sum(lengths) / 2) if has_headers else MAX_CELL_WITHOUT_HEADERS):
        return True
    if has_headers:
        return False
    return any(BLOCK in cell.minimal or (len(rows) == 1 and INSIDE.search(cell.minimal)) for cell in table.cells)


def has_header(table: Table) -> bool:
    return all(cell.kind == "h" for cell in table.rows[0])


def rows_of(table: Table, cell_text: Callable[[str], str]) -> list[list[str]] | None:
    """Return the texts of all rows, all of one length; None if they would be far larger than the page's."""
    grid = grid_of(table)
    if grid is None:
        return None
    columns = sorted({start for row in grid for start in row if row[start][1] == start})
    texts = {cell: cell_text(cell.minimal) for cell in table.cells}
    limit = GROWTH_IS_LIMITED_FROM + MAX_GROWTH * sum(map(len, texts.values()))
    rows = []
    for row in grid:
        rows.append([text_at(column, row, columns, texts) for column in columns])
        limit -= sum(map(len, rows[-1]))
        if limit < 0:
            return None
    return rows


def grid_of(table: Table) -> list[dict[int, tuple[Cell, int]]] | None:
    """Return for each row its columns, each with its cell and that cell's first column; None for too large a grid.

    The HTML standard, 4.9.12, "forming a table". Columns in which no cell starts are still there.
    """
    grid: list[dict[int, tuple[Cell, int]]] = []
    below: dict[int, tuple[Cell, int, int]] = {}
    limit = GROWTH_IS_LIMITED_FROM + MAX_GROWTH * len(table.cells)
    widest = 0
    for cells in table.rows:
        row = {column: (cell, start) for column, (cell, start, _) in below.items()}
        below = {column: (cell, start, rows - 1) for column, (cell, start, rows) in below.items() if rows > 1}
        start = 0
        for cell in cells:
            while start in row:
                start += 1
            for column in range(start, start + cell.columns):
                if column in row:
                    break
                row[column] = cell, start
                if cell.rows > 1:
                    below[column] = cell, start, cell.rows - 1
        grid.append(row)
        limit -= len(row)
        widest = max(widest, sum(column == start for column, (_, start) in row.items()))
        if limit < 0 or widest * len(grid) > GROWTH_IS_LIMITED_FROM + MAX_GROWTH * len(table.cells):
            return None
    return grid


def text_at(column: int, row: dict[int, tuple[Cell, int]], columns: list[int], texts: dict[Cell, str]) -> str:
    """Return the text in a column of a row: a cell's first column, or one that it spans."""
    if column not in row:
        return ""
    cell, start = row[column]
    if column == start:
        return texts[cell]
    is_whole_row = all(row.get(other, (None,))[0] is cell for other in (columns[0], columns[-1]))
    return "" if cell.kind == "h" or is_whole_row else texts[cell]


def markdown_table(rows: list[list[str]], has_header: bool) -> str:
    """Return rows as a Markdown table. Without a header its header is empty, as Markdown demands one."""
    width = len(rows[0])
    header, *body = rows if has_header else [[""] * width, *rows]
    lines = [header, ["---"] * width, *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
