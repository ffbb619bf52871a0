"""Fit a law by robust variable projection: for given exponents the other parameters are linear.

Golub and Pereyra 1973 (SIAM J. Numer. Anal. 10), with non-negative E, A and B (Lawson and Hanson 1974), and reweighted
for Huber's objective. A grid of exponents needs no start to choose; its best points are then minimised in all five
parameters. It has the optimum that Hoffmann et al. seek by L-BFGS from 4,500 starts.
"""

from __future__ import annotations

from typing import Any

from marin_assets.stages.scaling.law.minimise import huber
from marin_assets.stages.scaling.law.points import Points
from marin_assets.stages.scaling.law.refits import LARGEST_LOG, refit

GRID = (0.05, 1.0, 16)
"""Least and most exponent of the grid, and how many."""
REWEIGHTINGS = 8
STARTS = 8
"""Points of the grid from which all parameters are minimised."""


def project(points: Points, delta: float) -> tuple[Any, float]:
    """Return theta (see `Points.law`) and the objective of the best fit."""
    import numpy as np

    exponents = np.linspace(*GRID)
    trials = [_linear_fit(points, alpha, beta, delta) for alpha in exponents for beta in exponents]
    best = sorted(range(len(trials)), key=lambda trial: (trials[trial][1], trial))[:STARTS]
    starts = np.array([trials[trial][0] for trial in best])
    thetas, objectives = refit(points, np.ones((len(starts), len(points))), starts, delta)
    chosen = int(np.argmin(objectives))
    return thetas[chosen], float(objectives[chosen])


def _linear_fit(points: Points, alpha: float, beta: float, delta: float) -> tuple[Any, float]:
    """Theta and objective of the best E, A and B for these exponents."""
    import numpy as np
    from scipy.optimize import nnls  # 0.2 s to import

    terms = np.stack(
        [np.ones(len(points)), np.exp(-alpha * points.log_params), np.exp(-beta * points.log_tokens)], axis=1
    )
    relative, weights = terms / points.loss[:, None], np.ones(len(points))
    for _ in range(REWEIGHTINGS):
        root = np.sqrt(weights)
        linear, _ = nnls(relative * root[:, None], root)
        residuals = np.log(np.maximum(relative @ linear, 1e-9))
        weights = np.minimum(1.0, delta / np.maximum(np.abs(residuals), 1e-300))
    logs = np.log(np.maximum(linear, np.exp(-LARGEST_LOG)))
    return np.array([*logs, np.log(alpha), np.log(beta)]), float(huber(residuals, delta).sum())
