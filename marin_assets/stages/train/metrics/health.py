"""Signs of a problem in a training: numbers of its metrics, and the asset checks of these numbers.

In:  rows of metrics (`metrics.py`).   Out: numbers of the result, each with a check that warns.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable, Sequence

from marin_assets.stages.train.metrics.metrics import NOT_FINITE, Row
from marin_assets.step.expectation import Expectation, expect

WINDOW, LEAST_WINDOW = 1000, 50
SPIKE_DEVIATIONS = 7.0
"""A spike is this many standard deviations above the mean of the 1,000 losses before it: the spike score of OLMo 2
(arXiv:2501.00656)."""
MOST_LOADING, MOST_RISE = 0.1, 0.02

TRAINING_CHECKS = (
    expect("nonfinite_losses", at_most=0, warn=True, description="Steps whose loss was NaN or infinite."),
    expect("loss_spikes", at_most=0, warn=True, description="Steps whose loss is 7 deviations above those before."),
    expect("loading_share", at_most=MOST_LOADING, warn=True, description="Share of the time that waited for data."),
    expect(
        "validation_rise",
        at_most=MOST_RISE,
        warn=True,
        description="By how much the last loss of a validation set is above its lowest, the set that rose most.",
    ),
    expect("steps_without_loss", at_most=0, warn=True, description="Steps whose batch had no token in the loss."),
)
"""Checks of every training. They warn: an output that is older than a check has no number for it."""


def checks_of(expectations: Iterable[Expectation], further: Sequence[Expectation] = ()) -> tuple[Expectation, ...]:
    """The checks of a training: TRAINING_CHECKS and those of its kind, `further`, but for those of a metric in
    `expectations`, and `expectations`."""
    own = tuple(expectations)
    names = {expectation.name for expectation in own}
    return (*(expectation for expectation in (*TRAINING_CHECKS, *further) if expectation.name not in names), *own)


def health_of(rows: Sequence[Row], validation: str = "eval/") -> dict[str, float | int]:
    """Return the numbers of TRAINING_CHECKS. Shares are between 0 and 1; of a training without times, 0.

    `validation`: how the metrics of the validation sets begin, for the model that is exported.
    """
    losses = [row["train/loss"] for row in rows if "train/loss" in row]
    return {
        "nonfinite_losses": sum(f"{NOT_FINITE}train/loss" in row for row in rows),
        "loss_spikes": count_spikes(losses),
        "loading_share": _loading_share(rows),
        "validation_rise": max((_rise(values) for values in _validations(rows, validation).values()), default=0.0),
        "steps_without_loss": sum(loss == 0.0 for loss in losses),
    }


def count_spikes(losses: Iterable[float]) -> int:
    """Count the losses that are spikes. The first 50 cannot be, for want of a mean."""
    window: deque[float] = deque(maxlen=WINDOW)
    total = squares = 0.0
    spikes = 0
    for loss in losses:
        if len(window) >= LEAST_WINDOW:
            mean = total / len(window)
            deviation = max(squares / len(window) - mean * mean, 0.0) ** 0.5
            spikes += loss > mean + SPIKE_DEVIATIONS * deviation
        if len(window) == WINDOW:
            total, squares = total - window[0], squares - window[0] ** 2
        window.append(loss)
        total, squares = total + loss, squares + loss * loss
    return spikes


def _loading_share(rows: Iterable[Row]) -> float:
    """The share of loading in the time of a median step. A mean would count the first batch, and those after an
    evaluation."""
    timed = [row for row in rows if "throughput/loading_time" in row and "throughput/duration" in row]
    if not timed:
        return 0.0
    loading, training = (
        statistics.median(row[f"throughput/{part}"] for row in timed) for part in ("loading_time", "duration")
    )
    return round(loading / (loading + training), 4) if loading + training else 0.0


def _validations(rows: Iterable[Row], beginning: str) -> dict[str, list[float]]:
    """The losses of each validation set, in order."""
    losses: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            if name.startswith(beginning) and name.endswith("/loss"):
                losses.setdefault(name, []).append(value)
    return losses


def _rise(values: Sequence[float]) -> float:
    lowest = min(values)
    return round(values[-1] / lowest - 1, 4) if lowest > 0 else 0.0
