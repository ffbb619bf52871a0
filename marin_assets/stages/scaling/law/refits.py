"""Fit a law to many weightings of the same runs at once."""

from __future__ import annotations

from typing import Any

from marin_assets.stages.scaling.law.minimise import minimise
from marin_assets.stages.scaling.law.points import LEAST_EXPONENT, MOST_EXPONENT, Points

LARGEST_LOG = 25.0
"""Bound of the logs of E, A' and B'."""


def refit(points: Points, weights: Any, start: Any, delta: float) -> tuple[Any, Any]:
    """Return theta (see `Points.law`) and the objective of each row of `weights`, as `minimise` does."""
    import numpy as np

    low = np.array([*[-LARGEST_LOG] * 3, *[np.log(LEAST_EXPONENT)] * 2])
    high = np.array([*[LARGEST_LOG] * 3, *[np.log(MOST_EXPONENT)] * 2])

    def model(theta: Any, *, derivatives: bool) -> tuple[Any, Any]:
        alpha, beta = np.exp(theta[:, 3:4]), np.exp(theta[:, 4:5])
        e = np.exp(theta[:, 0:1]) + 0.0 * points.log_params
        a, b = np.exp(theta[:, 1:2] - alpha * points.log_params), np.exp(theta[:, 2:3] - beta * points.log_tokens)
        loss = e + a + b
        residuals = np.log(loss) - points.log_loss
        if not derivatives:
            return residuals, None
        columns = (e, a, b, -a * alpha * points.log_params, -b * beta * points.log_tokens)
        return residuals, np.stack(columns, axis=2) / loss[:, :, None]

    return minimise(model, weights, start, delta, low, high)
