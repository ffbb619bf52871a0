"""Sentences about a ladder that cannot be trusted as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marin_assets.stages.scaling.ladder.chain import Chain
from marin_assets.stages.scaling.law.doubts import doubts_of_law

AT_A_BOUND = 1e-3
LEAST_SPAN = 3.0
"""Spread of the scores in residuals: below, the scores are noise."""


def doubts_of_ladder(fitted: Chain, labels: Sequence[str]) -> list[str]:
    """The sentences: those about the law of the loss, then about the curve."""
    return [*doubts_of_law(fitted.law, labels), *_curve(fitted)]


def _curve(fitted: Chain) -> Iterator[str]:
    curve, losses, scores = fitted.curve, fitted.losses, fitted.scores
    spread = float((fitted.residuals**2).mean() ** 0.5)
    if scores.max() - scores.min() < LEAST_SPAN * spread:
        yield (
            f"The scores are {scores.min():.3f} to {scores.max():.3f}, with residuals of {spread:.3f}: mostly noise. "
            "Use a task that these models learn, or one with more questions."
        )
    if curve.ceiling <= curve.floor or curve.steepness * (losses.max() - losses.min()) < AT_A_BOUND:
        yield "The curve does not rise as the loss falls, so it forecasts no score."
        return
    if curve.ceiling > 1 - AT_A_BOUND:
        yield "The ceiling of the curve is at its bound, 1: the runs do not show where scores end."
    if curve.middle < losses.min():
        yield (
            f"The curve is steepest at a loss of {curve.middle:.3f}, below the least one of the runs, "
            f"{losses.min():.3f}: its upper half is extrapolated. Add larger runs."
        )
