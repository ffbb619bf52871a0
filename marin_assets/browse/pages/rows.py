"""A page of the rows of a file, at an offset, and beside each row what other outputs have of its id."""

from __future__ import annotations

from functools import partial
from typing import Any

from marin_assets.browse.cells.table import table_of
from marin_assets.browse.pages.columns_beside import columns_beside
from marin_assets.browse.pages.file_of_rows import FileOfRows, file_of_rows
from marin_assets.browse.query import address
from marin_assets.browse.rows.reader import read_page
from marin_assets.browse.site import Asked, Shown

COUNT, MOST = 100, 100


def rows(asked: Asked) -> Shown:
    start, count = asked.query.number("start"), asked.query.number("count", COUNT, most=MOST) or COUNT
    shown = file_of_rows(asked)
    page = read_page(shown.place.path, start=start, count=count)
    numbered = [(page.start + index, row) for index, row in enumerate(page.rows)]
    end = page.start + len(page.rows)
    beside = asked.query.texts("beside")
    facts: dict[str, Any] = {
        "shown": shown,
        "beside": columns_beside(asked.places, shown, beside, page.start, page.rows),
        "beside_texts": beside,
        "here": partial(address, "rows", path=shown.place.text, count=count if count != COUNT else "", beside=beside),
        "table": table_of(numbered),
        "page": page,
        "start": start,
        "count": count,
        "end": end,
        "previous": max(start - count, 0) if start else None,
        "next": end if _has_more(shown, len(page.rows), end, count) else None,
        "last": max(shown.total - 1, 0) // count * count if shown.total else None,
        "is_short": 0 < len(page.rows) < count and _has_more(shown, len(page.rows), end, len(page.rows)),
    }
    return Shown(template="rows", facts=facts)


def _has_more(shown: FileOfRows, rows_on_page: int, end: int, count: int) -> bool:
    """Whether rows follow the page; without a count of all rows, whether that may be so."""
    return end < shown.total if shown.total is not None else rows_on_page >= count
