"""Runs that a law can be fitted to, and the results that its forecasts are compared with."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.law.law import PARAMETERS
from marin_assets.stages.scaling.runs import Run

LEAST_RUNS = len(PARAMETERS) + 2
MOST_RUNS = 3000
"""The law is fitted again without each run, so the time grows with the square of their number."""
LEAST_VALUES = 3
"""Different params, and tokens: with two of them E cannot be separated from the term."""


def require_fittable(runs: Sequence[Run]) -> None:
    """Raise ScalingError for repeated runs, and for too few or too similar ones."""
    if len(runs) > MOST_RUNS:
        raise ScalingError(
            f"The table has {len(runs):,} runs, expected at most {MOST_RUNS:,} finished ones. Select them by a column: "
            "where={'final': 1}."
        )
    label, count = Counter(run.label for run in runs).most_common(1)[0]
    if count > 1:
        raise ScalingError(
            f"The run {label!r} has {count} rows, expected one for each finished run. Select them by a column: "
            "where={'final': 1}."
        )
    seen: dict[tuple[float, ...], str] = {}
    for run in runs:
        twin = seen.setdefault((run.params, run.tokens, run.values["loss"]), run.label)
        if twin != run.label:
            raise ScalingError(
                f"The runs {twin!r} and {run.label!r} have the same params, tokens and loss, expected each run once. "
                "Remove one."
            )
    if len(runs) < LEAST_RUNS:
        raise ScalingError(
            f"The table has {len(runs)} runs to fit, expected at least {LEAST_RUNS}: two more than the law has "
            "parameters. Add runs."
        )
    for name in ("params", "tokens"):
        number = len({getattr(run, name) for run in runs})
        if number < LEAST_VALUES:
            raise ScalingError(
                f"The runs have {number} value{'s' * (number > 1)} of {name}, expected at least {LEAST_VALUES}: with "
                "fewer its exponent is not determined. Add runs."
            )


def measured(value: Any) -> float | None:
    """A loss or a score that came true; None if the table has no number yet."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
