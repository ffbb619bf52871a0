"""Tables of JATS as Markdown: those of XHTML, and those of OASIS, with `row` and `entry`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from marin_assets.documents.xml.inline import local_name
from marin_assets.stages.transform.html.html_marks import MAX_COLSPAN, MAX_ROWSPAN
from marin_assets.stages.transform.html.markdown_tables import Cell, Table, has_header, markdown_table, rows_of

if TYPE_CHECKING:
    from lxml import etree

TABLES = ("table", "tgroup")
ROWS = ("tr", "row")
STRUCTURE = (*ROWS, "thead", "tbody", "tfoot", *TABLES)
CELLS = ("td", "th", "entry")


def table_blocks(element: etree._Element, cell_text: Callable[[etree._Element], str]) -> list[str]:
    """Return a table as one block of Markdown; as a line for each row if its cells span far more than it has.

    `cell_text` returns the text of a cell in one line.
    """
    texts: dict[str, str] = {}
    table = Table(0)
    columns_by_name = _columns_by_name(element)
    for number, row in enumerate(_rows(element)):
        for cell in row:
            key = str(len(texts))
            texts[key] = re.sub(r"(\\*)\|", r"\1\1\\|", cell_text(cell))
            columns, rows = _spans(cell, columns_by_name)
            table.cells.append(Cell(kind=_kind(cell), row=number, columns=columns, rows=rows, parts=[key]))
    if not any(texts.values()):
        return []
    rows_of_text = rows_of(table, texts.__getitem__)
    if rows_of_text is None:
        lines = (", ".join(filter(None, (texts[cell.minimal] for cell in row))) for row in table.rows)
        return [line for line in lines if line]
    return [markdown_table(rows_of_text, has_header(table))]


def outside_cells(element: etree._Element) -> Iterator[etree._Element | str]:
    """Yield the texts and the elements of a table that are in no cell, such as a caption, in their order."""
    yield element.text or ""
    for child in element:
        name = local_name(child)
        if name in STRUCTURE:
            yield from outside_cells(child)
        elif name and not (name in CELLS and local_name(element) in ROWS):
            yield child
        yield child.tail or ""


def _rows(element: etree._Element) -> Iterator[list[etree._Element]]:
    """The cells of each row, not those of a table within a cell."""
    for child in element:
        name = local_name(child)
        if name in ROWS:
            if cells := [cell for cell in child if local_name(cell) in CELLS]:
                yield cells
        elif name in STRUCTURE:
            yield from _rows(child)


def _kind(cell: etree._Element) -> str:
    row = cell.getparent()
    part = None if row is None else row.getparent()
    return "h" if local_name(cell) == "th" or (part is not None and local_name(part) == "thead") else "d"


def _columns_by_name(table: etree._Element) -> dict[str, int]:
    specs = [element for element in table.iter() if local_name(element) == "colspec"]
    return {spec.get("colname") or "": number for number, spec in enumerate(specs)}


def _spans(cell: etree._Element, columns_by_name: dict[str, int]) -> tuple[int, int]:
    """Columns and rows that a cell spans."""
    if local_name(cell) == "entry":
        first, last = (columns_by_name.get(cell.get(name) or "") for name in ("namest", "nameend"))
        columns = last - first + 1 if first is not None and last is not None else 1
        return max(1, min(columns, MAX_COLSPAN)), min(_number(cell.get("morerows"), 0) + 1, MAX_ROWSPAN)
    rows = _number(cell.get("rowspan"), 1)
    return min(_number(cell.get("colspan"), 1) or 1, MAX_COLSPAN), min(rows or MAX_ROWSPAN, MAX_ROWSPAN)


def _number(text: str | None, default: int) -> int:
    match = re.fullmatch(r"\s*([0-9]{1,6})\s*", text or "")
    return int(match[1]) if match else default
