"""The weights of a mixture in the metrics of each step. Levanter does not recognize its own mixture, and logs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from marin_assets.stages.train.specs.mixture import Mixture, drawn_members, phase_at, phases_of


def mixture_metrics(mixture: Mixture | None) -> Callable[[int], Mapping[str, float]]:
    """Return what gives the metrics of a step: its phase, and the weight of each member, which sum to 1."""
    if mixture is None:
        return lambda step: {}
    phases = phases_of(mixture.weights)
    members = drawn_members(phases)
    rows = {
        phase.first_step: {
            **{f"mixture/weight/{name}": phase.weights.get(name, 0.0) for name in members},
            "mixture/phase": float(number),
        }
        for number, phase in enumerate(phases)
    }
    return lambda step: rows[phase_at(phases, step).first_step]
