"""RedPajama's filter: reject documents by their signals, such as those with which a published data set was filtered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from marin_assets.documents.attributes import Decision
from marin_assets.stages.filter.signals.redpajama import Signal
from marin_assets.stages.filter.signals.redpajama_text import RedPajamaText
from marin_assets.stages.filter.signals.registry import NUMBERS, SIGNALS
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import Measure, at_least, at_most, first_beyond

RedPajamaThresholds: Any = dataclasses.make_dataclass(
    "RedPajamaThresholds",
    [
        (f"{bound}_{name}", float | None, dataclasses.field(default=None, kw_only=True))
        for name in NUMBERS
        for bound in ("min", "max")
    ],
    frozen=True,
    namespace={
        "__module__": __name__,
        "__doc__": "The smallest and the largest value that is kept, of each signal of one number. None disables one.",
    },
)


def _number_of(signal: Signal) -> Callable[[TextStatistics, Any], float]:
    """Return the measure of a signal: 0 where a ratio has no denominator."""

    def number(statistics: TextStatistics, _: Any) -> float:
        value = signal(statistics.by(RedPajamaText))
        return value if isinstance(value, int | float) else 0.0

    return number


MEASURES: tuple[Measure, ...] = tuple(
    bound(f"{word}_{name}", _number_of(SIGNALS[name]))
    for name in NUMBERS
    for word, bound in (("min", at_least), ("max", at_most))
)
"""In the order in which they are applied: that of the signals."""


def filter_redpajama(statistics: TextStatistics, thresholds: Any) -> Decision:
    """Reject for the first threshold that is missed."""
    return first_beyond("redpajama", MEASURES, statistics, thresholds)
