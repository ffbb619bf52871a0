"""The rows that are nearest to a threshold, on both sides of it, among those of a histogram."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from marin_assets.browse.cells.short_text import short_text
from marin_assets.browse.errors import LimitError
from marin_assets.browse.limits import ReaderGoneError
from marin_assets.browse.pages.files_of_rows import FilesOfRows
from marin_assets.browse.query import address
from marin_assets.browse.rows.histogram.fields import Field, file_and_row
from marin_assets.browse.rows.sample import chosen_rows
from marin_assets.browse.stored.thresholds import MOST, Threshold
from marin_assets.documents.document import DocumentError

NEAREST = 5
"""Rows on each side of a threshold."""


@dataclass(frozen=True, kw_only=True)
class Near:
    """A row near a threshold."""

    link: str
    name: str
    id: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Marked:
    """A threshold with the rows that are nearest to it."""

    threshold: Threshold
    value: str
    below: list[Near]
    """Those on its lower side, the nearest first."""
    above: list[Near]
    below_phrase: str
    above_phrase: str
    below_count: int
    above_count: int


def near_thresholds(shown: FilesOfRows, entry: Field, thresholds: Sequence[Threshold]) -> list[Marked]:
    """The thresholds with the nearest rows among those that were read."""
    marked = []
    for threshold in thresholds:
        value, is_most = threshold.value, threshold.rule == MOST
        sides = {False: list[int](), True: list[int]()}
        for index, number in enumerate(entry.numbers):
            sides[number > value if is_most else number >= value].append(index)
        near = {
            side: heapq.nsmallest(NEAREST, indices, key=lambda i: (abs(entry.numbers[i] - value), entry.places[i]))
            for side, indices in sides.items()
        }
        ids = _ids(shown, [entry.places[i] for indices in near.values() for i in indices])
        rows = {side: [_near(shown, entry, i, ids) for i in indices] for side, indices in near.items()}
        marked.append(
            Marked(
                threshold=threshold,
                value=f"{value:.10g}",
                below=rows[False],
                above=rows[True],
                below_phrase="up to it" if is_most else "below it",
                above_phrase="above it" if is_most else "from it on",
                below_count=len(sides[False]),
                above_count=len(sides[True]),
            )
        )
    return marked


def _ids(shown: FilesOfRows, places: list[int]) -> dict[int, str]:
    """The id of each row; none if the limits of the request are reached."""
    ids: dict[int, str] = {}
    try:
        for file, group in groupby(sorted(set(places)), key=lambda place: file_and_row(place)[0]):
            by_number = {file_and_row(place)[1]: place for place in group}
            for number, row in chosen_rows(shown.files[file].path, list(by_number)):
                ids[by_number[number]] = short_text(row.get("id", ""), 100).text if isinstance(row, dict) else ""
    except ReaderGoneError:
        raise
    except (LimitError, DocumentError, OSError):
        pass  # the histogram has its note of the limit already; the rows have links without ids
    return ids


def _near(shown: FilesOfRows, entry: Field, index: int, ids: dict[int, str]) -> Near:
    place = entry.places[index]
    file, number = file_and_row(place)
    return Near(
        link=address("row", path=shown.texts[file], row=number),
        name=f"{shown.files[file].name}, row {number}",
        id=ids.get(place, ""),
        value=f"{entry.numbers[index]:.10g}",
    )
