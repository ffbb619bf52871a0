"""Fit a law with all that shows how far it can be trusted: resamples, fits without each run, and two other methods.

A resample draws as many runs as the table has, with repetition (bootstrap: Efron 1979); the law of each is minimised
from that of all. Its intervals are quantiles of the resamples, and its errors half of the central 68.3 %, which a few
resamples without an optimum do not move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.stages.scaling.law.law import PARAMETERS, Law
from marin_assets.stages.scaling.law.parabolas import Parabolas, fit_parabolas
from marin_assets.stages.scaling.law.points import Points, points_of, residuals_of
from marin_assets.stages.scaling.law.projection import project
from marin_assets.stages.scaling.law.refits import refit
from marin_assets.stages.scaling.law.second_opinion import fit_by_lbfgs

ONE_SIGMA = 0.6827


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fitted law with its resamples."""

    points: Points
    law: Law
    objective: float
    residuals: Any
    """Log of measured by fitted, of each run."""
    weights: Any
    """Rows of resamples, columns of runs: how often it has the run."""
    resamples: Law
    """Arrays: a law for each resample."""
    drawn_residuals: Any
    """For each resample, the residual of a single run beside its law."""
    without: Law
    """Arrays: for each run, the law of all others."""
    second: Law
    second_objective: float
    parabolas: Parabolas
    confidence: float

    def interval(self, values: Any) -> tuple[float, float]:
        """The bounds that `confidence` of the values of the resamples are within."""
        return central(values, self.confidence)

    def error(self, values: Any) -> float:
        """The standard error that the values of the resamples have."""
        low, high = central(values, ONE_SIGMA)
        return (high - low) / 2

    def influence(self) -> dict[str, Any]:
        """For alpha, beta and a: how far the law of all others is from this one, in standard errors, by run."""
        import numpy as np

        return {
            name: (getattr(self.without, name) - getattr(self.law, name))
            / max(self.error(getattr(self.resamples, name)), np.finfo(float).tiny)
            for name in ("alpha", "beta", "a")
        }


def fit_law(
    params: Any, tokens: Any, flops: Any, loss: Any, *, delta: float, resamples: int, seed: int, confidence: float
) -> Fit:
    """Fit the law to arrays of one length. Equal arguments give equal numbers."""
    import numpy as np

    points = points_of(params, tokens, loss)
    count, random = len(points), np.random.default_rng(seed)
    theta, objective = project(points, delta)
    law = Law(*(float(value) for value in points.law(theta).values().values()))
    residuals = residuals_of(points, law)
    weights = random.multinomial(count, np.full(count, 1 / count), resamples).astype(float)
    drawn, _ = refit(points, weights, theta, delta)
    without, _ = refit(points, 1.0 - np.eye(count), theta, delta)
    second, second_objective = fit_by_lbfgs(points, delta)
    spread = np.sqrt(count / max(1, count - len(PARAMETERS)))  # the law has followed some of the noise
    return Fit(
        points=points,
        law=law,
        objective=objective,
        residuals=residuals,
        weights=weights,
        resamples=points.law(drawn),
        drawn_residuals=spread * random.choice(residuals, resamples),
        without=points.law(without),
        second=second,
        second_objective=second_objective,
        parabolas=fit_parabolas(points.params, points.tokens, np.asarray(flops, float), points.loss, weights),
        confidence=confidence,
    )


def central(values: Any, share: float) -> tuple[float, float]:
    """The bounds of the central share of the values."""
    import numpy as np

    low, high = np.quantile(values, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)
