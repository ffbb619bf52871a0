"""Progress of a step, as an observation of its asset: Dagster shows the newest one, and plots the numbers of all."""

from __future__ import annotations

from typing import Any

import dagster as dg

from marin_resources.storage.output.notes.progress import Progress
from marin_resources.types.durations import readable_duration


def observation_of(key: dg.AssetKey, partition: str | None, pace: Progress) -> dg.AssetObservation:
    """The step, its speed, its time left, and the other numbers that the function has reported."""
    numbers: dict[str, Any] = {
        "step": pace.step,
        "steps": pace.of,
        "steps_per_s": pace.steps_per_s,
        "left_s": None if pace.left_s is None else round(pace.left_s, 1),
    }
    shown = {name: value for name, value in numbers.items() if value is not None} | dict(pace.numbers)
    return dg.AssetObservation(key, partition=partition, description=_describe(pace), metadata=shown)


def _describe(pace: Progress) -> str:
    """ "step 120 of 600, loss 3.21, 2 min left" """
    parts = [f"step {pace.step}" + ("" if pace.of is None else f" of {pace.of}")]
    if "loss" in pace.numbers:
        parts.append(f"loss {pace.numbers['loss']:.4g}")
    if pace.left_s is not None:
        parts.append(f"{readable_duration(pace.left_s)} left")
    return ", ".join(parts)
