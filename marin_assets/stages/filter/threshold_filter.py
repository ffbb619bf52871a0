"""The parts of a family of filters: measures, each with a threshold of the same name.

A reason is the name of the family and of the threshold, such as "gopher_quality_min_words".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.attributes import KEPT, Decision
from marin_assets.stages.filter.statistics import TextStatistics


@dataclass(frozen=True, slots=True)
class Measure:
    """The number that the threshold `name` bounds."""

    name: str
    of: Callable[[TextStatistics, Any], float]
    """Computes the number from the statistics and all thresholds of the family."""
    is_least: bool
    """Whether the threshold is the smallest value that is kept (true) or the largest."""
    upper_bound: Callable[[TextStatistics, Any], float] | None = None
    """An upper bound of `of` that is much faster to compute, if one exists."""


def at_least(name: str, of: Callable[[TextStatistics, Any], float]) -> Measure:
    """Return a measure whose threshold is the smallest value that is kept."""
    return Measure(name, of, is_least=True)


def at_most(
    name: str,
    of: Callable[[TextStatistics, Any], float],
    upper_bound: Callable[[TextStatistics, Any], float] | None = None,
) -> Measure:
    """Return a measure whose threshold is the largest value that is kept."""
    return Measure(name, of, is_least=False, upper_bound=upper_bound)


def first_beyond(family: str, measures: Sequence[Measure], statistics: TextStatistics, thresholds: Any) -> Decision:
    """Reject for the first measure beyond its threshold. A threshold of None disables its measure."""
    for measure in measures:
        threshold = getattr(thresholds, measure.name)
        if threshold is None:
            continue
        if measure.upper_bound is not None and measure.upper_bound(statistics, thresholds) <= threshold:
            continue
        value = measure.of(statistics, thresholds)
        if value < threshold if measure.is_least else value > threshold:
            return rejected(family, measure.name, value)
    return KEPT


def rejected(family: str, name: str, value: float) -> Decision:
    """Return the decision that rejects a document for one threshold of a family."""
    return Decision(keep=False, reason=f"{family}_{name}", value=value)
