"""Minimise the objective of many weightings of the same runs at once: resamples, and fits without a run.

Newton's method on Huber's objective, damped as by Levenberg and Marquardt, with the matrix of reweighted least squares
as the damping: of much damping it is a reweighted step, which always descends, and of little a Newton step, which
converges in a few. A thousand resamples of 60 runs take a second.
"""

from __future__ import annotations

from typing import Any

from marin_assets.stages.scaling.law.points import LEAST_EXPONENT, MOST_EXPONENT, Points, huber

ROUNDS = 400
"""Most steps. Of 16 noisy runs, a resample in a hundred takes more than 150."""
SMALL_GAIN, SMALL_GAINS = 1e-8, 8
"""A refit has converged after so many steps in a row that gain less than this share of the objective."""
LEAST_DAMPING, MOST_DAMPING = 1e-8, 1e8
LONGEST_STEP = 0.5
"""In the log of a parameter."""
LARGEST_LOG = 25.0
RIDGE = 1e-3
"""Share of the damping on the diagonal: a resample of few runs does not determine all parameters."""


def refit(points: Points, weights: Any, start: Any, delta: float) -> tuple[Any, Any]:
    """Return theta (see `Points.law`) and the objective of each row of `weights`.

    `weights` has a row for each refit and a column for each run: how often the run counts. `start` is one theta, or one
    for each row.
    """
    import numpy as np

    theta = np.array(np.broadcast_to(start, (len(weights), 5)))
    objective = _objective(points, weights, theta, delta)
    damping, small, active = np.ones(len(weights)), np.zeros(len(weights), int), np.arange(len(weights))
    for _ in range(ROUNDS):
        if not len(active):
            break
        now, w, before = theta[active], weights[active], objective[active]
        candidate = _stepped(points, w, now, damping[active], delta)
        after = _objective(points, w, candidate, delta)
        better = after < before
        theta[active[better]], objective[active[better]] = candidate[better], after[better]
        damping[active] = np.clip(damping[active] * np.where(better, 0.3, 4.0), LEAST_DAMPING, MOST_DAMPING)
        gain = np.where(better, before - after, 0.0)
        small[active] = np.where(gain <= SMALL_GAIN * before, small[active] + 1, 0)
        active = active[small[active] < SMALL_GAINS]
    return theta, objective


def _stepped(points: Points, weights: Any, theta: Any, damping: Any, delta: float) -> Any:
    """Each theta after one damped step, within the bounds."""
    import numpy as np

    residuals, jacobian = _residuals(points, theta, derivatives=True)
    size = np.abs(residuals)
    gradient = np.einsum("rni,rn->ri", jacobian, weights * np.clip(residuals, -delta, delta))
    newton = np.einsum("rni,rnj->rij", jacobian * (weights * (size <= delta))[:, :, None], jacobian)
    reweighted = weights * np.minimum(1.0, delta / np.maximum(size, 1e-300))
    damped = np.einsum("rni,rnj->rij", jacobian * reweighted[:, :, None], jacobian)
    damped += RIDGE * np.einsum("rii->ri", damped)[:, :, None] * np.eye(5)
    matrix = newton + damping[:, None, None] * damped + 1e-16 * np.eye(5)
    step = np.linalg.solve(matrix, -gradient[:, :, None])[:, :, 0]
    moved = theta + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
    moved[:, :3] = np.clip(moved[:, :3], -LARGEST_LOG, LARGEST_LOG)
    moved[:, 3:] = np.clip(moved[:, 3:], np.log(LEAST_EXPONENT), np.log(MOST_EXPONENT))
    return moved


def _objective(points: Points, weights: Any, theta: Any, delta: float) -> Any:
    residuals, _ = _residuals(points, theta, derivatives=False)
    return (weights * huber(residuals, delta)).sum(axis=1)


def _residuals(points: Points, theta: Any, *, derivatives: bool) -> tuple[Any, Any]:
    """Log residuals, rows of runs, and their derivatives by theta."""
    import numpy as np

    alpha, beta = np.exp(theta[:, 3:4]), np.exp(theta[:, 4:5])
    e = np.exp(theta[:, 0:1]) + 0.0 * points.log_params
    a, b = np.exp(theta[:, 1:2] - alpha * points.log_params), np.exp(theta[:, 2:3] - beta * points.log_tokens)
    loss = e + a + b
    residuals = np.log(loss) - points.log_loss
    if not derivatives:
        return residuals, None
    columns = (e, a, b, -a * alpha * points.log_params, -b * beta * points.log_tokens)
    return residuals, np.stack(columns, axis=2) / loss[:, :, None]
