"""The first page: the prefixes, and the complete outputs below the first of them by their markers."""

from __future__ import annotations

from datetime import UTC, datetime

from marin_assets.browse.site import Asked, Shown
from marin_resources.storage.completion.markers import Mark, list_marks
from marin_resources.storage.files import folders_in

MOST_OUTPUTS = 500


def home(asked: Asked) -> Shown:
    name, chosen = asked.query.text("name"), asked.query.text("prefix") or asked.places.prefixes[0]
    place = asked.places.resolve(chosen)
    marks = sorted(
        (mark for mark in list_marks(place.path) if name in mark.name), key=lambda mark: (mark.name, -mark.finished_s)
    )
    facts = {
        "prefix": place.prefix,
        "chosen": chosen if asked.query.has("prefix") else "",
        "prefixes": asked.places.prefixes,
        "name": name,
        "outputs": [_output(asked, place.path, mark) for mark in marks[:MOST_OUTPUTS]],
        "total": len(marks),
        "folders": sorted(folder for folder in folders_in(place.path) if not folder.startswith(".")),
        "folder_text": place.text,
    }
    return Shown(template="home", facts=facts)


def _output(asked: Asked, prefix: str, mark: Mark) -> dict[str, object]:
    return {
        "name": mark.name,
        "version": mark.version,
        "text": asked.places.text_of(f"{prefix}/{mark.name}-{mark.version}") or "",
        "files": mark.files,
        "bytes": mark.bytes,
        "finished": datetime.fromtimestamp(mark.finished_s, UTC).strftime("%Y-%m-%d %H:%M"),
    }
