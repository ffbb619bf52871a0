"""The curve from the loss of a task to its score: floor + (ceiling - floor) / (1 + exp(steepness (loss - middle))).

Bhagia et al. 2024, section 3.2, where it is a / (1 + exp(-k (L - L0))) + b: k = -steepness, L0 = middle, b = floor,
a = ceiling - floor. Floor and ceiling are scores from 0 to 1 here.
"""

from __future__ import annotations

import itertools
from dataclasses import astuple, dataclass
from typing import Any

from marin_assets.stages.scaling.law.minimise import minimise

CURVE_PARAMETERS = ("floor", "ceiling", "steepness", "middle")
STEEPNESS = (0.05, 200.0)
STARTS = {"floor": (0.05, 0.3), "ceiling": (0.7, 0.95), "steepness": (2.0, 5.0, 10.0), "middle": (0.02, 0.3, 0.7)}
"""Values from which it is minimised, of middle as a quantile of the losses."""


@dataclass(frozen=True)
class Curve:
    """A fitted curve. Each field is a number, or an array with one for each resample."""

    floor: Any
    ceiling: Any
    steepness: Any
    middle: Any

    def score(self, loss: Any) -> Any:
        import numpy as np

        slope = np.clip(self.steepness * (loss - self.middle), -500, 500)
        return self.floor + (self.ceiling - self.floor) / (1 + np.exp(slope))

    def values(self) -> dict[str, Any]:
        return dict(zip(CURVE_PARAMETERS, astuple(self), strict=True))


def fit_curve(losses: Any, scores: Any, weights: Any, delta: float) -> tuple[Curve, Curve]:
    """Return the curve of all checkpoints, and those of each row of `weights` (arrays). See `minimise`."""
    import numpy as np

    spread = np.log(STEEPNESS)
    low = np.array([0.0, 0.0, spread[0], losses.min() - 5 * np.ptp(losses) - 1])
    high = np.array([1.0, 1.0, spread[1], losses.max() + 5 * np.ptp(losses) + 1])

    def model(theta: Any, *, derivatives: bool) -> tuple[Any, Any]:
        floor, ceiling = theta[:, 0:1], theta[:, 1:2]
        steepness, distance = np.exp(theta[:, 2:3]), losses - theta[:, 3:4]
        share = _logistic(-steepness * distance)
        residuals = floor + (ceiling - floor) * share - scores
        if not derivatives:
            return residuals, None
        slope = (ceiling - floor) * share * (1 - share)
        columns = (1 - share, share, -slope * steepness * distance, slope * steepness)
        return residuals, np.stack(columns, axis=2)

    starts = np.array([_start(values, losses) for values in itertools.product(*STARTS.values())])
    thetas, objectives = minimise(model, np.ones((len(starts), len(losses))), starts, delta, low, high)
    best = thetas[int(np.argmin(objectives))]
    drawn, _ = minimise(model, weights, best, delta, low, high)
    return _curve(best), _curve(drawn)


def _start(values: tuple[float, ...], losses: Any) -> list[float]:
    import numpy as np

    floor, ceiling, steepness, quantile = values
    return [floor, ceiling, float(np.log(steepness)), float(np.quantile(losses, quantile))]


def _curve(theta: Any) -> Curve:
    import numpy as np

    floor, ceiling, steepness, middle = np.moveaxis(theta, -1, 0)
    return Curve(floor, ceiling, np.exp(steepness), middle)


def _logistic(value: Any) -> Any:
    import numpy as np

    return 1 / (1 + np.exp(-np.clip(value, -500, 500)))
