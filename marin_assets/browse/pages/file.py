"""A file that is not one of rows: its text, part by part, or the page that it is."""

from __future__ import annotations

from typing import Any

from marin_assets.browse.cells.short_text import visible
from marin_assets.browse.errors import NotThereError
from marin_assets.browse.pages.scores import scores
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.files import page_of
from marin_resources.storage.files import open_to_read

PART_BYTES = 300_000
PAGES = (".html", ".htm")
ANSWERS = "samples.html"
"""The page of an evaluation, which is written before anybody looks for its questions in the training data."""


def file(asked: Asked) -> Shown:
    place, stored = asked.file()
    if page_of(stored.name) != "file":
        raise NotThereError(
            f"{place.text!r:.300} is not a file of text by its name. Open the output, and a file of it."
        )
    start, as_page = asked.query.number("start"), asked.query.has("page") and stored.name.lower().endswith(PAGES)
    with open_to_read(place.path) as raw:
        raw.seek(start)
        part = raw.read(PART_BYTES)
    text = part.decode("utf-8", "replace")
    owner = asked.owner(place)
    facts: dict[str, Any] = {
        "place": place,
        "owner": owner,
        "scores": scores(asked, owner) if owner is not None and stored.name.endswith(ANSWERS) else None,
        "is_page": stored.name.lower().endswith(PAGES),
        "as_page": as_page,
        "text": text if as_page else visible(text),
        "start": start,
        "end": start + len(part),
        "total": stored.size_bytes,
        "step": PART_BYTES,
    }
    return Shown(template="file", facts=facts)
