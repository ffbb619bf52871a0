"""Histograms of the rows of an output or a file: of all its fields, or of one with its thresholds and nearest rows.

The rows are all, or those that a seed draws; the page states which, and what a limit of the request leaves unread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from marin_assets.browse.cells.short_text import visible
from marin_assets.browse.cells.tree import named
from marin_assets.browse.errors import LimitError
from marin_assets.browse.limits import ReaderGoneError
from marin_assets.browse.pages.files_of_rows import FilesOfRows, counted_rows, files_of_rows
from marin_assets.browse.pages.histograms.charts import Bar, Chart, bars_of, chart_of, scale_of
from marin_assets.browse.pages.histograms.near_threshold import near_thresholds
from marin_assets.browse.pages.histograms.token_histogram import token_histogram
from marin_assets.browse.query import address
from marin_assets.browse.rows.histogram.bins import SCALES
from marin_assets.browse.rows.histogram.fields import Field, Fields
from marin_assets.browse.rows.measure import LENGTH, VALUE, keys_of, unpacked, value_of
from marin_assets.browse.rows.reader import Row, count_rows
from marin_assets.browse.rows.row_filter import RowFilter, filter_of
from marin_assets.browse.rows.sample import chosen_rows, draw
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.thresholds import (
    Threshold,
    all_thresholds,
    has_several_measures,
    own_thresholds,
)
from marin_assets.documents.caches.token_cache import LEDGER
from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import is_readable
from marin_assets.documents.rows import read_rows
from marin_resources.storage.files import exists
from marin_resources.storage.paths import join

DRAWN, SMALL_DRAWN, MOST_DRAWN = 1000, 20_000, 100_000
"""Rows that are drawn unless their number is given: of large files, of small files of many rows; and the limit."""
ALL = "all"
WHOLE_BYTES = 16 * 1024**2
"""Limit of the bytes of all files that are read whole; too many rows, or a number of rows, make it a sample."""
MOST_ROWS = {False: 200_000, True: 2_000_000}
"""Rows that are read at most: of all fields, and of one field. A number takes 16 bytes."""
BARS, ALL_BARS = 12, 200
"""Categories that have a bar: of each of all fields, and of one field."""


@dataclass
class Reading:
    """The rows of a histogram, while they are read."""

    fields: Fields
    read: int = 0
    bad: int = 0
    """Lines that are no row."""
    note: str = ""
    """Why it ended early."""
    damage: list[str] = field(default_factory=list)


def histogram(asked: Asked) -> Shown:
    place = asked.place()
    if not is_readable(place.name) and exists(join(place.path, LEDGER)):
        return token_histogram(asked)
    shown, chosen, scale = files_of_rows(asked), filter_of(asked.query), scale_of(asked.query)
    is_one = bool(chosen.of)
    thresholds = _thresholds(asked, shown, chosen)
    drawn = _drawn(asked, shown, MOST_ROWS[is_one])
    reading = Reading(Fields(chosen.of))
    counts = _counts(shown, reading) if drawn is not None else None
    pairs = None
    if drawn is not None and counts is not None and drawn < sum(counts):
        pairs = draw(counts, drawn, asked.query.number("seed"))
    _read(shown, chosen, pairs, reading, MOST_ROWS[is_one])
    query = _state_of(asked, chosen)
    fields = reading.fields.finish()
    facts: dict[str, Any] = {
        "shown": shown,
        "chosen": chosen,
        "conditions": {name: value for name, value in chosen.conditions.items() if name not in ("of", "by")},
        "pointer": chosen.of,
        "name": named(chosen.of),
        "reading": reading,
        "total": sum(counts or ()),
        "drawn": len(pairs) if pairs is not None else None,
        "seed": asked.query.number("seed"),
        "rows": asked.query.text("rows"),
        "scale": scale,
        "scales": SCALES,
        "fields": [_field(shown, chosen, entry, scale, query, [mark.value for mark in thresholds]) for entry in fields],
        "left_out": [named(pointer) for pointer in reading.fields.left_out],
        "marked": near_thresholds(shown, fields[0], thresholds) if is_one and chosen.by != LENGTH else [],
        "reasons": _reasons(asked, shown, chosen),
        "all_fields": address("histogram", path=shown.place.text, **{**query, "of": "", "by": "", "scale": ""}),
        "query": query,
    }
    return Shown(template="histogram", facts=facts)


def _drawn(asked: Asked, shown: FilesOfRows, most: int) -> int | None:
    """The number of rows to draw; None for all, which are at most `most` if that is known. Raises NotThereError."""
    if asked.query.text("rows") == ALL:
        return None
    count = asked.query.number("rows", most=MOST_DRAWN)
    if count:
        return count
    if sum(file.size_bytes for file in shown.files) > WHOLE_BYTES:
        return DRAWN
    return SMALL_DRAWN if _known_rows(shown) > most else None


def _known_rows(shown: FilesOfRows) -> int:
    """The rows of the files, as far as they are known without reading them."""
    with suppress(DocumentError, OSError):  # reading names the damage
        return sum(shown.noted.get(file.name) or count_rows(file.path) or 0 for file in shown.files)
    return 0


def _counts(shown: FilesOfRows, reading: Reading) -> list[int] | None:
    """The rows of each file; None with a note if too much would be read to count them: then the first rows are read."""
    try:
        return counted_rows(shown)[0]
    except ReaderGoneError:
        raise
    except LimitError as error:
        reading.note = str(error)
        return None


def _state_of(asked: Asked, chosen: RowFilter) -> dict[str, object]:
    """The state of the page as values of an address, without the path."""
    given = {name: asked.query.text(name) for name in ("rows", "seed", "scale")}
    return {**chosen.conditions, **{name: text for name, text in given.items() if text}}


def _read(
    shown: FilesOfRows, chosen: RowFilter, pairs: list[tuple[int, int]] | None, reading: Reading, most: int
) -> None:
    """Read the rows into the fields, until the end or a limit."""
    keys = keys_of(chosen.of)
    try:
        for file, number, row in _rows(shown, pairs, reading):
            reading.read += 1
            if not isinstance(row, dict):
                reading.bad += 1
            elif chosen.accepts(row):
                reading.fields.add(row, value_of(row, keys), file, number)
                if reading.fields.rows >= most:
                    reading.note = f"{most:,} rows are in the histograms, the limit."
                    return
        reading.note = ""  # all were read, also if they could not be counted before
    except ReaderGoneError:
        raise
    except LimitError as error:
        reading.note = str(error)


def _rows(shown: FilesOfRows, pairs: list[tuple[int, int]] | None, reading: Reading) -> Iterator[tuple[int, int, Row]]:
    """(index of the file, number, row) of the drawn rows, or of all. A damaged file is noted, and ends there."""
    drawn: dict[int, list[int]] = {}
    for file, number in pairs or ():
        drawn.setdefault(file, []).append(number)
    for index in range(len(shown.files)) if pairs is None else drawn:
        path = shown.files[index].path
        try:
            if pairs is None:
                yield from ((index, number - 1, unpacked(path, row)) for number, row in read_rows(path))
            else:
                yield from ((index, number, unpacked(path, row)) for number, row in chosen_rows(path, drawn[index]))
        except (DocumentError, OSError) as error:
            reading.damage.append(str(error))


def _thresholds(asked: Asked, shown: FilesOfRows, chosen: RowFilter) -> list[Threshold]:
    """The thresholds of the field: on the page of all fields those of the value in the output's own config alone."""
    keys = keys_of(chosen.of)
    if shown.owner is None or chosen.by == LENGTH or len(keys) > 1:
        return []
    if keys:
        return all_thresholds(asked.places, shown.owner, chosen.reason, keys[0])
    return own_thresholds(shown.owner, chosen.reason)


def _field(
    shown: FilesOfRows, chosen: RowFilter, entry: Field, scale: str, query: dict[str, object], marks: list[float]
) -> dict[str, Any]:
    """The charts of a field: of its numbers, and of its texts the counts if they are few, else the lengths."""
    path, pointer, is_one = shown.place.text, entry.pointer, bool(chosen.of)
    is_linked = pointer == (chosen.of or VALUE) or not chosen.has_measure  # a search has bounds of one field

    def search(**changes: Any) -> str:
        return address("search", path=path, **replace(chosen, **changes).conditions) if is_linked else ""

    def search_values(least: float, most: float) -> str:
        return search(of="" if pointer == VALUE else pointer, at_least=least, at_most=most)

    def search_lengths(least: float, most: float) -> str:
        return search(of=pointer, by=LENGTH, at_least=least, at_most=most)

    charts: list[Chart] = []
    bars: list[Bar] = []
    if len(entry.numbers) and not chosen.by:
        of_value = marks if pointer == (chosen.of or VALUE) else []
        charts.append(chart_of("values", entry.numbers, entry.is_whole, scale, search_values, of_value))
    if entry.has_categories and not chosen.by:
        bars = bars_of(entry, ALL_BARS if is_one else BARS, search)
    elif len(entry.lengths):
        charts.append(chart_of("lengths", entry.lengths, True, scale, search_lengths, []))
    return {
        "name": named(pointer),
        "link": address("histogram", path=path, **{**query, "of": pointer}),
        "by_length": address("histogram", path=path, **{**query, "of": pointer, "by": LENGTH}),
        "charts": charts,
        "bars": bars,
        "distinct": len(entry.categories) if entry.categories is not None else None,
        "special": [(visible(kind[:80]), count) for kind, count in entry.special.items()],
    }


def _reasons(asked: Asked, shown: FilesOfRows, chosen: RowFilter) -> list[tuple[str, str]]:
    """(reason, address) of each threshold of a filter, whose values are of different measures."""
    if shown.owner is None or not has_several_measures(shown.owner) or chosen.reason:
        return []
    result = shown.owner.record.result
    names = [key.removeprefix("rejected_") for key in result if key.startswith("rejected_")] if result else []
    query = {**_state_of(asked, chosen), "of": VALUE}
    return [
        (visible(name[:80]), address("histogram", path=shown.place.text, **{**query, "reason": name}))
        for name in sorted(names)[:BARS]
    ]
