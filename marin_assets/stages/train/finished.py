"""What there is when a model is trained and exported, and what the result of every training says of it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.metrics.curve import curve_of
from marin_assets.stages.train.metrics.health import health_of
from marin_assets.stages.train.metrics.metrics import ParameterCounts, Row
from marin_assets.stages.train.starting_point import StartingPoint

EXPORT, PLOT, CURVES_PLOT = "hf", "plots/loss.png", "plots/curves.png"
CURVES = {
    "gradient_norm_curve": "grad/norm/total",
    "learning_rate_curve": "optim/learning_rate",
}
LAST_STEPS = 10


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    rows: list[Row]
    parameters: ParameterCounts
    resumed_from_step: int | None
    """The checkpoint's step, if this attempt began with one."""
    start: StartingPoint | None
    """What it went on from."""
    links: Mapping[str, str]
    """Tracker -> where a person finds the run."""
    validation_loss: str
    """The metric that is the validation loss of the exported model."""

    @property
    def first_step(self) -> int:
        """Number of the first step that was trained; above 0 if an optimizer went on."""
        return 0 if self.start is None else self.start.first_step


def result_of(run: FinishedRun) -> dict[str, Any]:
    """Return tokens_per_second (median over the steps), train_loss_end (mean of the last 10 losses that are finite, or
    None), loss_curve, validation_curve and CURVES (means over 40 equal parts of the steps), model_path, plots, links
    (of the trackers), flops (of the whole training, by Levanter's count of the model), mfu (median share of the
    devices' peak, where that is known), the numbers of `health_of`, resumed_from_step, and with a start started_from
    (path, step, optimizer_state).
    """
    losses = _values(run.rows, "train/loss")
    return {
        "tokens_per_second": statistics.median(_values(run.rows, "throughput/tokens_per_second")),
        "train_loss_end": statistics.fmean(losses[-LAST_STEPS:]) if losses else None,
        "loss_curve": curve_of(_values(run.rows, "train/loss")),
        "validation_curve": curve_of(_values(run.rows, run.validation_loss)),
        **{name: curve_of(_values(run.rows, metric)) for name, metric in CURVES.items()},
        "model_path": EXPORT,
        "plots": [PLOT, CURVES_PLOT],
        "links": dict(run.links),
        **_flops(run.rows),
        **health_of(run.rows, validation=run.validation_loss.removesuffix("loss")),
        "resumed_from_step": run.resumed_from_step,
        **({} if run.start is None else {"started_from": run.start.describe()}),
    }


def _values(rows: Sequence[Row], metric: str) -> list[float]:
    return [row[metric] for row in rows if metric in row]


def _flops(rows: Sequence[Row]) -> dict[str, float]:
    total, shares = _values(rows, "throughput/total_gflops"), _values(rows, "throughput/mfu")
    found = {"flops": total[-1] * 1e9} if total else {}
    return found | ({"mfu": round(statistics.median(shares) / 100, 4)} if shares else {})
