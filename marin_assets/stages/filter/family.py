"""What a family of filters is made of: measures, each with a threshold of its name.

A reason is the family's name and the threshold's, such as "gopher_quality_min_words".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.attributes import KEPT, Verdict
from marin_assets.stages.filter.statistics import TextStatistics


@dataclass(frozen=True, slots=True)
class Measure:
    """What the threshold `name` is a bound of; `of` is given the statistics and all thresholds."""

    name: str
    of: Callable[[TextStatistics, Any], float]
    is_least: bool
    """Whether the threshold is the least that is kept, or the most."""
    ceiling: Callable[[TextStatistics, Any], float] | None = None
    """What `of` may be at most, if that is found much sooner."""


def at_least(name: str, of: Callable[[TextStatistics, Any], float]) -> Measure:
    return Measure(name, of, is_least=True)


def at_most(
    name: str,
    of: Callable[[TextStatistics, Any], float],
    ceiling: Callable[[TextStatistics, Any], float] | None = None,
) -> Measure:
    return Measure(name, of, is_least=False, ceiling=ceiling)


def first_beyond(family: str, measures: Sequence[Measure], statistics: TextStatistics, thresholds: Any) -> Verdict:
    """Rejects for the first measure beyond its threshold; a threshold of None asks for nothing."""
    for measure in measures:
        threshold = getattr(thresholds, measure.name)
        if threshold is None:
            continue
        if measure.ceiling is not None and measure.ceiling(statistics, thresholds) <= threshold:
            continue
        value = measure.of(statistics, thresholds)
        if value < threshold if measure.is_least else value > threshold:
            return rejected(family, measure.name, value)
    return KEPT


def rejected(family: str, name: str, value: float) -> Verdict:
    return Verdict(keep=False, reason=f"{family}_{name}", value=value)
