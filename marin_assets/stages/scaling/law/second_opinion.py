"""Fit a law as Hoffmann et al. 2022 do: L-BFGS from a grid of starts; here from the 20 best of the 4,500.

The objective is divided by delta, and the tolerances are small: with those of SciPy the optimizer stops where it
starts, and reports that it has converged (compare Besiroglu et al. 2024, who refitted the published figure).
"""

from __future__ import annotations

from typing import Any

from marin_assets.stages.scaling.law.law import Law
from marin_assets.stages.scaling.law.minimise import huber
from marin_assets.stages.scaling.law.points import LEAST_EXPONENT, MOST_EXPONENT, Points

STARTS = 20
LOGS, LOG_FLOORS, EXPONENTS = (0, 5, 10, 15, 20, 25), (-1, -0.5, 0, 0.5, 1), (0, 0.5, 1, 1.5, 2)
"""Starts of log A and log B, of log E, and of both exponents."""
PARTS = 15
"""Parts of the grid: one has 24 MB of residuals of 10,000 runs."""
TOLERANCES = {"maxiter": 1000, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 20}


def fit_by_lbfgs(points: Points, delta: float) -> tuple[Law, float]:
    """Return the law and its objective."""
    import numpy as np
    from scipy.optimize import minimize

    axes = np.meshgrid(LOGS, LOGS, LOG_FLOORS, EXPONENTS, EXPONENTS, indexing="ij")
    grid = np.stack(axes, axis=-1).reshape(-1, 5).astype(float)
    parts = np.array_split(grid, PARTS)
    values = [huber(_residuals(part.T[:, :, None], points)[0], delta).sum(axis=1) for part in parts]
    starts = grid[np.argsort(np.concatenate(values), kind="stable")[:STARTS]]
    bounds = [(None, None)] * 3 + [(LEAST_EXPONENT, MOST_EXPONENT)] * 2
    fits = [
        minimize(_objective, start, (points, delta), "L-BFGS-B", jac=True, bounds=bounds, options=TOLERANCES)
        for start in starts
    ]
    best = min(fits, key=lambda fit: float(fit.fun))
    a, b, e, alpha, beta = best.x
    return Law(np.exp(e), np.exp(a), np.exp(b), alpha, beta), float(best.fun) * delta


def _objective(theta: Any, points: Points, delta: float) -> tuple[float, Any]:
    """The objective by delta and its gradient, at (log A, log B, log E, alpha, beta)."""
    import numpy as np

    residuals, shares = _residuals(theta, points)
    a, b, e = shares * np.clip(residuals / delta, -1.0, 1.0)
    log_n, log_d = points.log_params + points.mean_log_params, points.log_tokens + points.mean_log_tokens
    gradient = np.array([a.sum(), b.sum(), e.sum(), -(a * log_n).sum(), -(b * log_d).sum()])
    return float(huber(residuals, delta).sum()) / delta, gradient


def _residuals(theta: Any, points: Points) -> tuple[Any, Any]:
    """Log of fitted by measured, and the shares of the three terms in the fitted loss. A part of theta is a number, or
    a column of them for a row of residuals each."""
    import numpy as np

    log_a, log_b, log_e, alpha, beta = theta
    log_n, log_d = points.log_params + points.mean_log_params, points.log_tokens + points.mean_log_tokens
    terms = np.stack([log_a - alpha * log_n, log_b - beta * log_d, log_e + 0.0 * (log_n + alpha)])
    most = terms.max(axis=0)
    shares = np.exp(terms - most)
    total = shares.sum(axis=0)
    return most + np.log(total) - points.log_loss, shares / total
