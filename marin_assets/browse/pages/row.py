"""One row: all its values with their keys; a value as its whole text, part by part; a value as the page that it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_assets.browse.cells.short_text import scalar_text, short_text, visible
from marin_assets.browse.cells.tree import Tree, named, value_at
from marin_assets.browse.errors import NotThereError
from marin_assets.browse.pages.file_of_rows import FileOfRows, file_of_rows
from marin_assets.browse.pages.rewards.rollout import is_rollout
from marin_assets.browse.rows.reader import Row, find_row, read_page
from marin_assets.browse.site import Asked, Shown
from marin_assets.documents.document import BadRow

PART_CHARACTERS = 100_000
"""Characters of a long text on one page; each may take five bytes."""
PAGE_CHARACTERS = 350_000
"""Characters of a stranger's page that are shown in its frame."""


def row(asked: Asked) -> Shown:
    shown = file_of_rows(asked)
    number = _number(asked, shown)
    content, has_next = _read(shown, number)
    is_bad = isinstance(content, BadRow)
    tree = Tree({} if isinstance(content, BadRow) else content)
    id = content.get("id") if isinstance(content, Mapping) else None
    facts: dict[str, Any] = {
        "shown": shown,
        "number": number,
        "tree": tree,
        "bad": short_text(f"{content.reason}: {content.detail}", 1000) if isinstance(content, BadRow) else None,
        "id": id if isinstance(id, str) and len(id) <= 2000 else None,
        "short_id": short_text(id, 200).text if isinstance(id, str) else "",
        "has_next": has_next,
        "is_bad": is_bad,
        "is_rollout": not is_bad and is_rollout(content),
    }
    return Shown(template="row", facts=facts)


def cell(asked: Asked) -> Shown:
    """A value as its whole text, PART_CHARACTERS on a page."""
    shown, number, value = _value(asked)
    start = asked.query.number("start")
    text = value if isinstance(value, str) else scalar_text(value, PART_CHARACTERS * 100)
    part = text[start : start + PART_CHARACTERS]
    facts: dict[str, Any] = {
        "shown": shown,
        "number": number,
        "pointer": asked.query.text("at"),
        "name": named(asked.query.text("at")) or "row",
        "text": visible(part),
        "start": start,
        "end": start + len(part),
        "total": len(text),
        "step": PART_CHARACTERS,
    }
    return Shown(template="cell", facts=facts)


def page(asked: Asked) -> Shown:
    """A value as the web page that it is, in a frame that can do nothing."""
    shown, number, value = _value(asked)
    if not isinstance(value, str):
        raise NotThereError("The value is not a text, and only a text is shown as a page. Open the row.")
    facts: dict[str, Any] = {
        "shown": shown,
        "number": number,
        "pointer": asked.query.text("at"),
        "name": named(asked.query.text("at")),
        "html": value[:PAGE_CHARACTERS],
        "is_cut": len(value) > PAGE_CHARACTERS,
        "total": len(value),
    }
    return Shown(template="page", facts=facts)


def _number(asked: Asked, shown: FileOfRows) -> int:
    """The number of the row of the address; of its id if it has that. Raises NotThereError."""
    if not asked.query.has("id"):
        return asked.query.number("row")
    id = asked.query.text("id")
    number = find_row(shown.place.path, id)
    if number is None:
        raise NotThereError(f"No row of {shown.place.name!r:.200} has the id {id!r:.200}. Look in the other shards.")
    return number


def _read(shown: FileOfRows, number: int) -> tuple[Row, bool]:
    """A row, and whether another follows it. Raises NotThereError behind the last one."""
    rows = read_page(shown.place.path, start=number, count=1).rows
    if not rows:
        size = f" It has {shown.total:,} rows." if shown.total is not None else ""
        raise NotThereError(f"{shown.place.name!r:.200} has no row {number:,}, counted from 0.{size}")
    return rows[0], shown.total is None or number + 1 < shown.total


def _value(asked: Asked) -> tuple[FileOfRows, int, Any]:
    shown = file_of_rows(asked)
    number = _number(asked, shown)
    content, _ = _read(shown, number)
    if isinstance(content, BadRow):
        raise NotThereError(f"Line {number:,} is not a row ({content.reason}): it has no values.")
    value = value_at(content, asked.query.text("at"))
    return shown, number, value if not isinstance(value, dict | list) else short_text(value, PART_CHARACTERS).text
