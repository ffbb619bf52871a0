"""A page of the rows of a file, at an offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.browse.cells.table import table_of
from marin_assets.browse.errors import NotThereError
from marin_assets.browse.places import Place
from marin_assets.browse.rows.reader import count_rows, read_page
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.row_counts import noted_rows
from marin_assets.browse.stored.state import OutputState
from marin_assets.documents.formats import is_readable
from marin_resources.storage.files import StoredFile

COUNT, MOST = 100, 100


@dataclass(frozen=True, kw_only=True)
class FileOfRows:
    """A file of rows with what is known about it."""

    place: Place
    file: StoredFile
    owner: OutputState | None
    total: int | None
    """The number of its rows, if that is known without reading them."""


def file_of_rows(asked: Asked, name: str = "path") -> FileOfRows:
    """The file of the address. Raises NotThereError if it is not one of rows."""
    place, file = asked.file(name)
    if not is_readable(file.name):
        raise NotThereError(
            f"{place.text!r:.300} is not a file of rows by its name. Open the output, and a file of it."
        )
    owner = asked.owner(place)
    return FileOfRows(place=place, file=file, owner=owner, total=_total(place, owner))


def _total(place: Place, owner: OutputState | None) -> int | None:
    rows = count_rows(place.path)
    if rows is None and owner is not None and place.path.startswith(f"{owner.data_path}/"):
        rows = noted_rows(owner.place.path).get(place.path[len(owner.data_path) + 1 :])
    return rows


def rows(asked: Asked) -> Shown:
    start, count = asked.query.number("start"), asked.query.number("count", COUNT, most=MOST) or COUNT
    shown = file_of_rows(asked)
    page = read_page(shown.place.path, start=start, count=count)
    numbered = [(page.start + index, row) for index, row in enumerate(page.rows)]
    end = page.start + len(page.rows)
    facts: dict[str, Any] = {
        "shown": shown,
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
