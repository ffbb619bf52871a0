"""A table of wikitext as a Markdown table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from marin_assets.stages.transform.html.html_marks import MAX_COLSPAN, MAX_ROWSPAN
from marin_assets.stages.transform.html.markdown_tables import (
    MAX_CELL_WITHOUT_HEADERS,
    Cell,
    Table,
    has_header,
    markdown_table,
    rows_of,
)

LAYOUT = re.compile(r"\b(?:infobox|navbox|toccolours|toc|sidebar|ambox|metadata)\b|display\s*:\s*none", re.IGNORECASE)


def table_of(tag: Any, text_of: Callable[[Any], str]) -> str | None:
    """Return a table's Markdown; None for a table that is none of data: one in another one, or of navigation, of one
    column or one row, of long texts, or empty."""
    if LAYOUT.search(" ".join(str(attribute) for attribute in tag.attributes)):
        return None
    table = Table(0)
    rows = [node for node in tag.contents.nodes if _is(node, "tr")]
    if loose := [node for node in tag.contents.nodes if _is(node, "td") or _is(node, "th")]:
        _add(table, loose, 0, text_of)
    for number, row in enumerate(rows, 1):
        _add(table, [node for node in row.contents.nodes if _is(node, "td") or _is(node, "th")], number, text_of)
    cells = [cell.minimal for cell in table.cells]
    if any("\x05" in cell or len(cell) > MAX_CELL_WITHOUT_HEADERS for cell in cells) or not any(cells):
        return None
    if len(table.rows) < 2 or max(sum(cell.columns for cell in row) for row in table.rows) < 2:
        return None
    filled = rows_of(table, lambda minimal: minimal)
    return None if filled is None else markdown_table(filled, has_header(table))


def _is(node: Any, name: str) -> bool:
    return type(node).__name__ == "Tag" and str(node.tag).strip().lower() == name


def _add(table: Table, nodes: list[Any], row: int, text_of: Callable[[Any], str]) -> None:
    for node in nodes:
        spans = {name: _span(node, name) for name in ("colspan", "rowspan")}
        text = " ".join(re.sub(r"^[*#:;]+", "", line).strip() for line in text_of(node.contents).split("\n"))
        table.cells.append(
            Cell(
                kind="h" if _is(node, "th") else "d",
                row=row,
                columns=min(spans["colspan"], MAX_COLSPAN),
                rows=min(spans["rowspan"], MAX_ROWSPAN),
                parts=[" ".join(text.replace("\x04", " ").replace("|", "\\|").split())],
            )
        )


def _span(node: Any, name: str) -> int:
    value = next((str(a.value).strip() for a in node.attributes if str(a.name).strip().lower() == name), "1")
    return max(1, int(value)) if value.isascii() and value.isdecimal() and len(value) < 6 else 1
