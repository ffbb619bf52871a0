"""Bins of numbers, with bounds that people read easily, and the count of each: as `numpy.histogram` has it.

In:  finite numbers.   Out: edges and counts. A bin has its lower edge and not its upper one; the last bin has both.

Numbers that are not negative and spread over three decades have a log scale: two bins for each doubling, below them one
for zeros.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

AUTO, LINEAR, LOG = "auto", "linear", "log"
SCALES = (AUTO, LINEAR, LOG)
BINS = 40
"""About as many bins has a histogram; a log scale has up to twice as many."""
DECADES = 1000.0
"""Largest part of the range to its least one, from which the scale is a log scale by itself."""
LEAST_STEP = 1e-290
"""Smaller ones have fewer digits than other floats."""
ROUND_STEPS = (1, 2, 5, 10)


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Counts of numbers in bins."""

    edges: Sequence[float]
    """One more than bins, in order."""
    counts: Sequence[int]
    is_log: bool
    is_whole: bool
    """Whether all numbers are whole ones."""
    values: Sequence[float]
    """The numbers, sorted."""

    def bounds(self, bin: int) -> tuple[float, float]:
        """The least and the largest number of a bin, both included."""
        low, high = self.edges[bin], self.edges[bin + 1]
        if bin + 1 < len(self.counts):
            high = math.ceil(high) - 1 if self.is_whole else math.nextafter(high, -math.inf)
        return (math.ceil(low), math.floor(high)) if self.is_whole else (low, high)

    def quantile(self, share: float) -> float:
        """The quantile, between two numbers by their distance, as `numpy.quantile` has it."""
        place = share * (len(self.values) - 1)
        low, high = self.values[math.floor(place)], self.values[math.ceil(place)]
        return low if low == high else low + (high - low) * (place - math.floor(place))

    @property
    def mean(self) -> float:
        """The mean, also of numbers whose sum is no float."""
        return math.fsum(value / len(self.values) for value in self.values)


def histogram(numbers: Sequence[float], *, scale: str = AUTO, is_whole: bool) -> Histogram:
    """The histogram of finite numbers, at least one of them. `is_whole`: whether all are whole numbers."""
    values = array("d", sorted(numbers))
    is_log = (scale == LOG and values[0] >= 0) or (scale == AUTO and _spreads(values))
    is_log = is_log and values[-1] > 0
    edges = _log_edges(values, is_whole) if is_log else _linear_edges(values[0], values[-1], is_whole)
    places = [bisect_left(values, edge) for edge in edges[:-1]] + [bisect_right(values, edges[-1])]
    counts = [high - low for low, high in pairwise(places)]
    return Histogram(edges=edges, counts=counts, is_log=is_log, is_whole=is_whole, values=values)


def _spreads(values: Sequence[float]) -> bool:
    """Whether the numbers above zero, without the least and the largest percent, spread over decades."""
    positive = values[bisect_right(values, 0) :]
    if values[0] < 0 or not len(positive):
        return False
    low, high = positive[len(positive) // 100], positive[-1 - len(positive) // 100]
    return high / DECADES >= low or positive[-1] / DECADES**2 >= low


def _linear_edges(least: float, most: float, is_whole: bool) -> list[float]:
    span = most - least
    if span == 0:
        return [least, least + 1] if is_whole and abs(least) < 2**53 else [least, most]
    step = span / BINS
    if not LEAST_STEP < step < math.inf or step < 4 * math.ulp(max(abs(least), abs(most))):  # edges would be equal
        return [least, most]
    step = max(_round_step(step), float(is_whole))
    first = math.floor(least / step)
    first -= first * step > least
    digits = max(0, 1 - math.floor(math.log10(step))) if step < 1 else 0
    count = math.floor(span / step) + 3
    edges = [round((first + i) * step, digits) for i in range(count + 1)]
    last = next((i for i, edge in enumerate(edges) if i and edge >= most), len(edges) - 1)
    last += is_whole and edges[last] == most and last + 1 < len(edges)  # a whole number begins a bin of its own
    return [min(edges[0], least), *edges[1:last], max(edges[last], most)]


def _round_step(step: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not less."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((power * times for times in ROUND_STEPS if power * times >= step * (1 - 1e-9)), power * 10)


def _log_edges(values: Sequence[float], is_whole: bool) -> list[float]:
    """Powers of the root of 2, or of a larger number if that were too many, from the least number above zero on."""
    least, most = values[bisect_right(values, 0)], values[-1]
    low, high = 2 * math.floor(math.log2(least)), 2 * (math.floor(math.log2(most)) + 1)
    step = max(1, math.ceil((high - low) / (2 * BINS)))
    powers = [2.0 ** (power / 2) for power in range(low, high + step, step) if power / 2 < 1024]
    if powers[-1] < most:
        powers.append(most)
    edges = sorted({float(round(power)) for power in powers}) if is_whole else powers
    edges[0] = min(edges[0], least)
    return [0.0, *edges] if values[0] == 0 else edges
