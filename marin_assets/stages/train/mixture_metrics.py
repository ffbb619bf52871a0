"""The weights of a mixture in the metrics of each step. Levanter does not recognize its own mixture, and logs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from marin_assets.stages.train.mixture import Mixture, drawn_members, stage_at, stages_of


def mixture_metrics(mixture: Mixture | None) -> Callable[[int], Mapping[str, float]]:
    """Return what gives the metrics of a step: its stage, and the weight of each member, which sum to 1."""
    if mixture is None:
        return lambda step: {}
    stages = stages_of(mixture.weights)
    members = drawn_members(stages)
    rows = {
        stage.first_step: {
            **{f"mixture/weight/{name}": stage.weights.get(name, 0.0) for name in members},
            "mixture/stage": float(number),
        }
        for number, stage in enumerate(stages)
    }
    return lambda step: rows[stage_at(stages, step).first_step]
