"""The side of a training on rewards that waits for the other, in one sentence."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from marin_assets.browse.stored.reward_training import Row

MUCH = 0.15
"""A share of the time that is worth a sampler."""
PART = 4
"""The last quarter of the steps is judged, by its median: the first ones compile, and for the last ones nothing is left
to sample."""
TRAINING, SAMPLERS, DRAWN = "rl/wait_share", "rl/samplers_wait_share", "rl/drawn_tokens_per_second"


def about_waits(rows: Sequence[Row]) -> str:
    """The sentence; empty for rows without these metrics, and for a training that does not sample."""
    last = rows[-max(len(rows) // PART, 1) :]
    if not any(DRAWN in row for row in last):
        return ""
    training, samplers = _median(last, TRAINING), _median(last, SAMPLERS)
    if training is None:
        return ""
    if samplers is None:
        return (
            f"The training's own process samples, and is busy with that for {training:.0%} of its time: samplers=1 "
            "with staleness=1 would do both at the same time."
        )
    waits = f"The training waits for rollouts {training:.0%} of its time, and samplers wait for weights {samplers:.0%}"
    if training < MUCH and samplers < MUCH:
        return f"{waits}: both sides are about equal, and more speed needs more of both."
    if min(training, samplers) >= max(MUCH, max(training, samplers) / 2):
        return f"{waits}: they wait in turn. A higher staleness lets both work at the same time."
    if training > samplers:
        return f"{waits}: enlarge the sampling, by more samplers."
    return f"{waits}: enlarge the training, by more devices or a greater batch; fewer samplers would do as well."


def _median(rows: Sequence[Row], metric: str) -> float | None:
    values = [row[metric] for row in rows if metric in row]
    return statistics.median(values) if values else None
