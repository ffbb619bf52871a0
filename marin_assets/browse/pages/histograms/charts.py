"""Histograms and bars as the numbers that a template draws: each bar with its label, its size and its address."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from marin_assets.browse.cells.short_text import short_text
from marin_assets.browse.errors import NotThereError
from marin_assets.browse.query import Query
from marin_assets.browse.rows.histogram.bins import AUTO, SCALES, Histogram, histogram
from marin_assets.browse.rows.histogram.fields import Field

HEIGHT = 100.0
LEAST_HEIGHT = 1.5
"""Height of the bar of a single row, so that it can be seen."""
LABEL_CHARACTERS = 60
TICKS = (4, 3, 2, 5)
"""Numbers of equal parts of an axis, the preferred one first."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    label: str
    count: int
    size: float
    """HEIGHT for the largest bar."""
    link: str
    """The address of its rows; empty if a search cannot have that condition."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A histogram with its bars."""

    of: str
    """"values", "lengths" or "tokens"."""
    bars: list[Bar]
    ticks: list[str]
    """Labels of edges at equal distances, the first and the last among them."""
    marks: list[float]
    """Places of thresholds, in bars from the left; without those outside of the edges."""
    is_log: bool
    summary: list[tuple[str, str]]
    """Names and numbers that describe the values."""
    largest: int


def scale_of(query: Query) -> str:
    """The scale of an address. Raises NotThereError."""
    scale = query.text("scale") or AUTO
    if scale not in SCALES:
        raise NotThereError(f"scale is {scale!r:.60}, expected one of {', '.join(SCALES)}. Correct the address.")
    return scale


def chart_of(
    of: str,
    numbers: Sequence[float],
    is_whole: bool,
    scale: str,
    link_of: Callable[[float, float], str],
    marks: Sequence[float],
) -> Chart:
    """The chart of numbers. `link_of` has the address of the rows from a least to a most number."""
    made = histogram(numbers, scale=scale, is_whole=is_whole)
    largest = max(made.counts)
    bars = [_bar(made, bin, largest, link_of) for bin in range(len(made.counts))]
    names = ("least", "10 % are below", "median", "90 % are below", "largest")
    quantiles = [number_text(made.quantile(share), False) for share in (0, 0.1, 0.5, 0.9, 1)]
    places = [_place(made, mark) for mark in marks]
    return Chart(
        of=of,
        bars=bars,
        ticks=_ticks(made),
        marks=[place for place in places if place is not None],
        is_log=made.is_log,
        summary=[*zip(names, quantiles, strict=True), ("mean", number_text(made.mean, False))],
        largest=largest,
    )


def bars_of(entry: Field, most: int, search: Callable[..., str]) -> list[Bar]:
    """Bars of the most frequent categories of a field, and one of the others."""
    assert entry.categories
    ordered = sorted(entry.categories.items(), key=lambda item: (-item[1], item[0]))
    largest = ordered[0][1]
    bars = [
        Bar(
            label=short_text(text, LABEL_CHARACTERS).text + "…" * (len(text) > LABEL_CHARACTERS) if text else "(empty)",
            count=count,
            size=_size(count, largest),
            link=_link(entry.pointer, text, search),
        )
        for text, count in ordered[:most]
    ]
    others = sum(count for _, count in ordered[most:])
    if others:
        label = f"{len(ordered) - most:,} others"
        bars.append(Bar(label=label, count=others, size=_size(min(others, largest), largest), link=""))
    return bars


def number_text(number: float, is_whole: bool) -> str:
    """A number for people, of six digits if it is not a whole one."""
    if (is_whole or float(number).is_integer()) and abs(number) < 1e15:
        return f"{number:,.0f}"
    return f"{number:.6g}"


def _bar(made: Histogram, bin: int, largest: int, link_of: Callable[[float, float], str]) -> Bar:
    least, most = made.bounds(bin)
    count = made.counts[bin]
    if made.is_whole:
        ends = dict.fromkeys((number_text(least, True), number_text(most, True)))
        label = " to ".join(ends)
    else:
        low, high = (number_text(edge, False) for edge in made.edges[bin : bin + 2])
        label = low if low == high else f"{low} to {high}"
    return Bar(label=label, count=count, size=_size(count, largest), link=link_of(least, most) if count else "")


def _size(count: int, largest: int) -> float:
    return round(max(HEIGHT * count / largest, LEAST_HEIGHT), 2) if count else 0.0


def _ticks(made: Histogram) -> list[str]:
    """The edges that divide the axis in equal parts, of as many as there may be on a narrow screen."""
    bins = len(made.counts)
    parts = next((parts for parts in TICKS if bins % parts == 0), 1)
    return [number_text(made.edges[bins // parts * part], made.is_whole) for part in range(parts + 1)]


def _place(made: Histogram, number: float) -> float | None:
    """The place of a number on the axis, in bins from the left; None outside of it."""
    if not made.edges[0] <= number <= made.edges[-1]:
        return None
    bin = min(bisect_right(made.edges, number), len(made.edges) - 1) - 1
    low, high = made.edges[bin : bin + 2]
    return round(bin + ((number - low) / (high - low) if high > low else 0), 3)


def _link(pointer: str, text: str, search: Callable[..., str]) -> str:
    if pointer == "/keep":
        return search(fate="kept" if text == "true" else "rejected")
    if not text:
        return search(fate="kept") if pointer == "/reason" else ""
    if pointer == "/reason":
        return search(reason=text)
    if pointer == "/source":
        return search(source=text)
    return search(of=pointer, equals=text, by="")
