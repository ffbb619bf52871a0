"""The difference of two outputs by the ids of their rows: counts, then the rows of a kind with their texts' difference.

A comparison of many rows takes longer than a request: each request continues it for STEP_S, and the page states how far
it came, until all is compared. The server keeps what was read, in memory of a limited size.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.browse.cells.short_text import ShortText, short_text
from marin_assets.browse.cells.tree import escaped, named
from marin_assets.browse.errors import LimitError, NotThereError
from marin_assets.browse.limits import ReaderGoneError
from marin_assets.browse.pages.files_of_rows import FilesOfRows, files_of_rows
from marin_assets.browse.query import address
from marin_assets.browse.rows.difference.comparison import KINDS, TEXT, Comparison, Place
from marin_assets.browse.rows.difference.digests import ENCODER
from marin_assets.browse.rows.difference.inventory import BUCKETS, Inventory
from marin_assets.browse.rows.difference.kept import KEPT
from marin_assets.browse.rows.difference.marked_text import Piece, marked_text
from marin_assets.browse.rows.measure import MISSING, unpacked
from marin_assets.browse.rows.reader import PAGE_CHARACTERS, characters_of
from marin_assets.browse.rows.sample import chosen_rows
from marin_assets.browse.site import Asked, Shown
from marin_assets.documents.document import DocumentError

STEP_S = 8.0
"""Time of a request for reading and comparing."""
LEFT_S = 4.0
"""Time of a request that is left for the rows of the page."""
COUNT = 20
"""Rows on a page."""
TEXT_CHARACTERS, VALUE_CHARACTERS = 600, 300
MOST_VALUES = 20
WORDS = {
    "text": "with another text",
    "verdict": "with another verdict (keep or reason)",
    "values": "with other values",
    "added": "added",
    "removed": "removed",
}
"""The phrase of each kind."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """The row of an id on one side."""

    link: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Pair:
    """An id with its rows before and after."""

    id: ShortText
    before: Side | None
    after: Side | None
    pieces: list[Piece]
    """The difference of the texts."""
    text: ShortText | None
    """The text, if it is that of one side, or the same on both."""
    values: list[tuple[str, str, str]]
    """Name, value before and value after of values that differ."""
    note: str = ""
    """Why nothing is shown of the rows."""


def difference(asked: Asked) -> Shown:
    if not asked.query.has("before"):
        raise NotThereError(
            "The address has no 'before', expected the path of an output. Begin at the page of an output."
        )
    before, after = files_of_rows(asked, "before"), files_of_rows(asked)
    comparison = KEPT.comparison(before.files, after.files)
    progress, note = comparison.progress, ""
    try:
        _advance(asked, comparison)
    except ReaderGoneError:
        raise
    except LimitError as error:
        note = str(error)
    counts = [(kind, WORDS[kind], comparison.count(kind)) for kind in KINDS]
    kind = _kind(asked, counts)
    start = asked.query.number("start")
    is_finished = comparison.is_finished
    pairs = _pairs(asked, comparison, (before, after), kind, start) if is_finished else []
    total = comparison.count(kind)
    facts: dict[str, Any] = {
        "before": before,
        "after": after,
        "comparison": comparison,
        "is_finished": is_finished,
        "is_moving": comparison.progress != progress and not note,
        "note": note,
        "sides": [_side_facts("before", before, comparison.before), _side_facts("after", after, comparison.after)],
        "share": BUCKETS // comparison.kept,
        "compared": f"{min(comparison.bucket, comparison.kept)} of {comparison.kept}",
        "counts": counts,
        "kind": kind,
        "phrase": WORDS[kind],
        "pairs": pairs,
        "start": start,
        "end": min(start + COUNT, total),
        "total": total,
        "query": {"path": after.place.text, "before": before.place.text},
        "here": address("difference", **_state(before, after, kind if asked.query.has("kind") else "", start)),
        "previous": address("difference", **_state(before, after, kind, max(start - COUNT, 0))) if start else "",
        "next": address("difference", **_state(before, after, kind, start + COUNT)) if start + COUNT < total else "",
    }
    return Shown(template="difference", facts=facts)


def _state(before: FilesOfRows, after: FilesOfRows, kind: str, start: int) -> dict[str, object]:
    return {"path": after.place.text, "before": before.place.text, "kind": kind, "start": start or ""}


def _advance(asked: Asked, comparison: Comparison) -> None:
    """Continue the comparison, unless another request does for all the time that this one has."""
    end_s = time.monotonic() + min(STEP_S, max(asked.watch.seconds_left - LEFT_S, 0))
    if comparison.lock.acquire(timeout=max(end_s - time.monotonic(), 0)):
        try:
            comparison.advance(end_s)
        finally:
            comparison.lock.release()


def _kind(asked: Asked, counts: Sequence[tuple[str, str, int]]) -> str:
    """The kind of the address; without one the first that any id has. Raises NotThereError."""
    kind = asked.query.text("kind")
    if kind and kind not in KINDS:
        raise NotThereError(f"kind is {kind!r:.60}, expected one of {', '.join(KINDS)}. Correct the address.")
    return kind or next((name for name, _, count in counts if count), TEXT)


def _side_facts(name: str, shown: FilesOfRows, inventory: Inventory) -> dict[str, Any]:
    return {
        "name": name,
        "shown": shown,
        "rows": inventory.rows,
        "files": inventory.file,
        "of_files": len(shown.files),
        "is_finished": inventory.is_finished,
        "bad": inventory.bad,
        "without_id": inventory.without_id,
        "damage": inventory.damage[:10],
        "damaged": len(inventory.damage),
    }


def _pairs(
    asked: Asked, comparison: Comparison, sides: tuple[FilesOfRows, FilesOfRows], kind: str, start: int
) -> list[Pair]:
    """The ids of a page with their rows."""
    places = comparison.pairs(kind, start, COUNT)
    read: list[dict[Place, Any]] = []
    note = ""
    for index, shown in enumerate(sides):
        try:
            read.append(_rows(shown, [pair[index] for pair in places]))
        except ReaderGoneError:
            raise
        except (LimitError, DocumentError, OSError) as error:
            note, read = str(error), [*read, {}]
    return [_pair(asked, sides, before, after, (read[0], read[1]), note) for before, after in places]


def _rows(shown: FilesOfRows, places: Sequence[Place | None]) -> dict[Place, Any]:
    """The rows at these places; those after PAGE_CHARACTERS are left out. Raises DocumentError, LimitError."""
    by_file: dict[int, list[int]] = {}
    for file, number in sorted({place for place in places if place is not None}):
        by_file.setdefault(file, []).append(number)
    rows: dict[Place, Any] = {}
    characters = 0
    for file, numbers in by_file.items():
        path = shown.files[file].path
        for number, row in chosen_rows(path, numbers):
            rows[file, number] = unpacked(path, row)
            characters += characters_of(row)
            if characters > PAGE_CHARACTERS:
                return rows
    return rows


def _pair(
    asked: Asked,
    sides: tuple[FilesOfRows, FilesOfRows],
    before: Place | None,
    after: Place | None,
    read: tuple[Mapping[Place, Any], Mapping[Place, Any]],
    note: str,
) -> Pair:
    old: Any = {} if before is None else read[0].get(before)
    new: Any = {} if after is None else read[1].get(after)
    if not isinstance(old, dict) or not isinstance(new, dict):
        note = note or "The rows before it on this page are very large. Open the row."
        old, new = {}, {}
    texts: tuple[Any, Any] = old.get("text"), new.get("text")
    has_two = before is not None and after is not None
    is_changed = has_two and isinstance(texts[0], str) and isinstance(texts[1], str) and texts[0] != texts[1]
    text = None if is_changed else next((text for text in texts if isinstance(text, str)), None)
    return Pair(
        id=short_text((new or old).get("id", ""), 200),
        before=_side(sides[0], before),
        after=_side(sides[1], after),
        pieces=marked_text(texts[0], texts[1], is_fine=asked.watch.seconds_left > 1) if is_changed else [],
        text=None if text is None else short_text(text, TEXT_CHARACTERS),
        values=_values(old, new) if has_two else [],
        note=note,
    )


def _side(shown: FilesOfRows, place: Place | None) -> Side | None:
    if place is None:
        return None
    file, row = place
    return Side(link=address("row", path=shown.texts[file], row=row), name=f"{shown.files[file].name}, row {row:,}")


def _values(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The values that differ, without a text that is shown as a difference; of metadata its own values."""
    pairs: list[tuple[str, Any, Any]] = []
    for key in dict.fromkeys((*old, *new)):
        a, b = old.get(key, MISSING), new.get(key, MISSING)
        if key == "metadata" and isinstance(a, dict) and isinstance(b, dict):
            names = dict.fromkeys((*a, *b))
            pairs += [(f"/metadata/{escaped(name)}", a.get(name, MISSING), b.get(name, MISSING)) for name in names]
        elif key != "text" or not (isinstance(a, str) and isinstance(b, str)):
            pairs.append((f"/{escaped(key)}", a, b))
    differing = [(name, a, b) for name, a, b in pairs if _differs(a, b)]
    return [(named(name), _value_text(a), _value_text(b)) for name, a, b in differing[:MOST_VALUES]]


def _differs(a: Any, b: Any) -> bool:
    """Whether two values have different digests: 1 and 1.0 have, two NaN have not."""
    return (a is MISSING) != (b is MISSING) or ENCODER.encode(a) != ENCODER.encode(b)


def _value_text(value: Any) -> str:
    if value is MISSING:
        return "(none)"
    text = short_text(value, VALUE_CHARACTERS)
    return text.text + (f"… cut of {text.size}" if text.is_cut else "")
