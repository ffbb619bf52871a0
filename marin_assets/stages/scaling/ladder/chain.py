"""Chain the law of a task's loss and the curve of its score, with the same resamples of runs in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.stages.scaling.ladder.curve import Curve, fit_curve
from marin_assets.stages.scaling.law.fit import Fit, central
from marin_assets.stages.scaling.law.forecast import Interval


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A fitted ladder. Scores are from 0 to 1."""

    law: Fit
    curve: Curve
    curves: Curve
    """Arrays: the curve of each resample."""
    losses: Any
    scores: Any
    """Measured at the checkpoints that the curve is fitted to."""
    residuals: Any
    """Measured less fitted score, of each checkpoint."""
    final_residuals: Any
    """For each resample, that of a finished run."""

    def score(self, params: float, tokens: float) -> tuple[Interval, Interval]:
        """The score of a run: the interval of law and curve, and that of a single run."""
        import numpy as np

        law, confidence = self.law, self.law.confidence
        value = float(self.curve.score(law.law.loss(params, tokens)))
        drawn = law.resamples.loss(params, tokens)
        of_run = self.curves.score(drawn * np.exp(law.drawn_residuals)) + self.final_residuals
        bounds = [central(scores, confidence) for scores in (self.curves.score(drawn), np.clip(of_run, 0.0, 1.0))]
        of_curve, single = (Interval(value=value, low=low, high=high) for low, high in bounds)
        return of_curve, single


def chain(law: Fit, losses: Any, scores: Any, run_of: Any, final: Any, *, delta: float, seed: int) -> Chain:
    """Fit the curve to checkpoints. `run_of` has the number of the run of each, `final` whether it is finished."""
    import numpy as np

    losses, scores, run_of = np.asarray(losses, float), np.asarray(scores, float), np.asarray(run_of)
    curve, curves = fit_curve(losses, scores, law.weights[:, run_of], delta)
    residuals = scores - curve.score(losses)
    random = np.random.default_rng([seed, 1])  # another stream than that of the runs
    return Chain(
        law=law,
        curve=Curve(*(float(value) for value in curve.values().values())),
        curves=curves,
        losses=losses,
        scores=scores,
        residuals=residuals,
        final_residuals=random.choice(residuals[np.asarray(final)], len(law.weights)),
    )
