"""Minimise Huber's objective for many weightings of the same points at once: resamples, and fits without a run.

Newton's method, damped as by Levenberg and Marquardt, with the matrix of reweighted least squares as the damping: with
much damping a step is a reweighted one, which descends, and with little a Newton step, which converges in a few. A
thousand resamples of 60 runs take a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

ROUNDS = 400
"""Most steps. Of 16 noisy runs, a resample in a hundred takes more than 150."""
SMALL_GAIN, SMALL_GAINS = 1e-8, 8
"""A fit has converged after this number of steps in a row that gain less than this share of the objective."""
LEAST_DAMPING, MOST_DAMPING = 1e-8, 1e8
LONGEST_STEP = 0.5
"""Longest change of a parameter, which is a logarithm or of that size."""
PART = 100_000
"""Residuals that are in memory at once: with their derivatives 10 MB."""
RIDGE = 1e-3
"""Share of the damping on the diagonal: a resample of few runs does not determine all parameters."""

Model: TypeAlias = Callable[..., tuple[Any, Any]]
"""model(theta, derivatives=…) -> residuals (a row for each theta, a column for each point) and their derivatives."""


def minimise(model: Model, weights: Any, start: Any, delta: float, low: Any, high: Any) -> tuple[Any, Any]:
    """Return theta and the objective of each row of `weights`.

    `weights` has a row for each fit and a column for each point: how often the point counts. `start` is one theta, or
    one for each row; `low` and `high` are bounds of theta.
    """
    import numpy as np

    starts = np.broadcast_to(start, (len(weights), np.shape(start)[-1]))
    rows = max(1, PART // weights.shape[1])
    fits = [
        _minimise_part(model, weights[row : row + rows], starts[row : row + rows], delta, low, high)
        for row in range(0, len(weights), rows)
    ]
    thetas, objectives = zip(*fits, strict=True)
    return np.concatenate(thetas), np.concatenate(objectives)


def _minimise_part(model: Model, weights: Any, start: Any, delta: float, low: Any, high: Any) -> tuple[Any, Any]:
    """Minimise as many rows as fit in memory."""
    import numpy as np

    theta = np.array(start, float)
    objective = _objective(model, weights, theta, delta)
    damping, small, active = np.ones(len(weights)), np.zeros(len(weights), int), np.arange(len(weights))
    for _ in range(ROUNDS):
        if not len(active):
            break
        w, before = weights[active], objective[active]
        candidate = np.clip(_stepped(model, w, theta[active], damping[active], delta, low, high), low, high)
        after = _objective(model, w, candidate, delta)
        better = after < before
        theta[active[better]], objective[active[better]] = candidate[better], after[better]
        damping[active] = np.clip(damping[active] * np.where(better, 0.3, 4.0), LEAST_DAMPING, MOST_DAMPING)
        gain = np.where(better, before - after, 0.0)
        small[active] = np.where(gain <= SMALL_GAIN * before, small[active] + 1, 0)
        active = active[small[active] < SMALL_GAINS]
    return theta, objective


def huber(residuals: Any, delta: float) -> Any:
    """Huber's loss of each residual: its square up to delta, its size beyond (1964, Ann. Math. Statist. 35)."""
    import numpy as np

    size = np.abs(residuals)
    return np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def _objective(model: Model, weights: Any, theta: Any, delta: float) -> Any:
    residuals, _ = model(theta, derivatives=False)
    return (weights * huber(residuals, delta)).sum(axis=1)


def _stepped(model: Model, weights: Any, theta: Any, damping: Any, delta: float, low: Any, high: Any) -> Any:
    """Each theta after one damped step. A parameter that a bound holds is left out of it (Bertsekas 1982)."""
    import numpy as np

    residuals, jacobian = model(theta, derivatives=True)
    size, identity = np.abs(residuals), np.eye(theta.shape[1])
    gradient = np.einsum("rni,rn->ri", jacobian, weights * np.clip(residuals, -delta, delta))
    newton = np.einsum("rni,rnj->rij", jacobian * (weights * (size <= delta))[:, :, None], jacobian)
    reweighted = weights * np.minimum(1.0, delta / np.maximum(size, 1e-300))
    damped = np.einsum("rni,rnj->rij", jacobian * reweighted[:, :, None], jacobian)
    damped += RIDGE * np.einsum("rii->ri", damped)[:, :, None] * identity
    matrix = newton + damping[:, None, None] * damped + 1e-16 * identity
    free = ~(((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0)))
    matrix = np.where(free[:, :, None] & free[:, None, :], matrix, identity)
    step = np.linalg.solve(matrix, np.where(free, -gradient, 0.0)[:, :, None])[:, :, 0]
    return theta + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
