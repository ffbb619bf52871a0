"""L = a C^-b + c: the loss of a recipe by its training FLOPs; forecasts of it, and the compute that another one saves.

In:  FLOPs and losses, a point a size.   Out: laws, forecasts, speedups. Read: nothing.

The fit minimises the squares of the relative residuals. For a given b, a and c are linear, and both are 0 or more
(Golub and Pereyra 1973, variable projection), so one number is searched. With a floor, c is that. Effective speedup is
the compute that a baseline needs for a loss, by the compute that was used, as in Marin's experiments
(marin-community/marin).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from marin_resources.types.errors import InvalidInputError

LEAST_POINTS = 5
"""Points of a forecast. Four do not determine three parameters: forecasts of such groups of Marin's leaderboard at 1e22
FLOPs were between 0.75 and 0.91 bits per byte."""
LEAST_OF_A_BASELINE = 3
"""An interval by n - 2 degrees of freedom needs three."""
EXPONENTS = (0.005, 2.0)
"""The exponents b that are searched."""
GRID = 60
CONFIDENCE = 0.90
SAME = 0.01
"""Relative difference up to which two FLOPs are those of one size."""


class PowerLawError(InvalidInputError):
    """Numbers that no law fits: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """L = a C^-b + c."""

    a: float
    b: float
    c: float

    def loss(self, flops: float) -> float:
        return float(self.a * flops**-self.b + self.c)

    @property
    def is_at_a_bound(self) -> bool:
        """Whether the points do not determine the exponent: the best one is at an end of those that are searched."""
        low, high = EXPONENTS
        return self.b < low * 1.01 or self.b > high / 1.01


@dataclass(frozen=True, kw_only=True)
class Forecast:
    law: Law
    flops: float
    loss: float
    low: float
    high: float
    """The range of the forecasts without one point each."""
    points: int


def fit_law(flops: Sequence[float], losses: Sequence[float], floor: float | None = None) -> Law:
    """Fit the law. At least three points, of different FLOPs; with a floor two, and all losses above it.

    Raises PowerLawError for fewer, and for numbers that are not finite and above 0.
    """
    import numpy as np
    from scipy.optimize import minimize_scalar, nnls  # 0.3 s to import

    _require_points(flops, losses, floor, least=3 if floor is None else 2)
    scale = math.exp(math.fsum(map(math.log, flops)) / len(flops))
    x, y = np.log(np.asarray(flops, float) / scale), np.asarray(losses, float)
    base = 0.0 if floor is None else floor

    def solve(b: float) -> tuple[float, float, float]:
        columns = [np.exp(-b * x)] + ([np.ones_like(x)] if floor is None else [])
        (a, *c), residual = nnls(np.stack(columns, 1) / y[:, None], (y - base) / y)
        return float(residual), float(a), float(c[0]) if c else base

    low, high = map(math.log, EXPONENTS)
    grid = np.linspace(low, high, GRID)
    best = int(np.argmin([solve(math.exp(point))[0] for point in grid]))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)])
    best_point = minimize_scalar(
        lambda q: solve(math.exp(q))[0], bounds=bounds, method="bounded", options={"xatol": 1e-9}
    )
    b = math.exp(float(best_point.x))
    _, a, c = solve(b)
    return Law(a=a * scale**b, b=b, c=c)


def forecast(flops: Sequence[float], losses: Sequence[float], at: float, floor: float | None = None) -> Forecast:
    """The loss at `at` FLOPs, with the range of the forecasts that leave out one point each.

    Raises PowerLawError for fewer points than LEAST_POINTS.
    """
    if len(flops) < LEAST_POINTS:
        raise PowerLawError(f"A forecast has {len(flops)} points, expected {LEAST_POINTS} or more. Train more sizes.")
    law = fit_law(flops, losses, floor)
    without = []
    for place in range(len(flops)):
        fewer, lower = ([*numbers[:place], *numbers[place + 1 :]] for numbers in (flops, losses))
        without.append(fit_law(fewer, lower, floor).loss(at))
    return Forecast(law=law, flops=at, loss=law.loss(at), low=min(without), high=max(without), points=len(flops))


def effective_speedup(worse: float, better: float, floor: float, alpha: float) -> float:
    """((worse - floor) / (better - floor))^(1 / alpha): the factor by which the compute of a law with this floor and
    exponent grows from the worse to the better loss. Raises PowerLawError for losses that are not above the floor."""
    if not all(floor < loss < math.inf for loss in (worse, better)):
        raise PowerLawError(
            f"The losses {worse!r} and {better!r} are not both above the floor {floor!r}. Give the floor of this "
            "metric, below all losses."
        )
    if not 0 < alpha < math.inf:
        raise PowerLawError(f"The exponent is {alpha!r}, expected a finite number above 0.")
    return float(((worse - floor) / (better - floor)) ** (1 / alpha))


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """L = floor + A C^-alpha through the runs of a baseline, by least squares of log(L - floor) over log C."""

    floor: float
    alpha: float
    intercept: float
    """log A"""
    deviation: float
    """Standard deviation of log(L - floor) around the line, by n - 2 degrees of freedom."""
    mean: float
    """The mean of log C."""
    squares: float
    """Sum of the squares of log C around the mean."""
    points: int
    smallest: float
    largest: float
    """FLOPs of the runs."""

    def loss(self, flops: float) -> float:
        return self.floor + math.exp(self.intercept - self.alpha * math.log(flops))


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """Above 1: the baseline needs that many times the compute."""

    value: float
    low: float
    high: float
    """The 90 % interval, of what a run of the baseline could have had by chance: the lack of fit of its line."""
    is_within: bool
    """Whether the compute is between the smallest and the largest run of the baseline: else it is extrapolated."""


def fit_baseline(flops: Sequence[float], losses: Sequence[float], floor: float) -> Baseline:
    """Fit the line of the baseline. Raises PowerLawError for fewer than three points, for losses that are not above the
    floor, and for losses that do not fall."""
    _require_points(flops, losses, floor, least=LEAST_OF_A_BASELINE)
    x, y = [math.log(c) for c in flops], [math.log(loss - floor) for loss in losses]
    mean, height = math.fsum(x) / len(x), math.fsum(y) / len(y)
    squares = math.fsum((c - mean) ** 2 for c in x)
    slope = math.fsum((a - mean) * (b - height) for a, b in zip(x, y, strict=True)) / squares
    if slope >= 0:
        raise PowerLawError("The losses of the baseline do not fall with its compute, so it has no exponent.")
    residuals = [b - height - slope * (a - mean) for a, b in zip(x, y, strict=True)]
    deviation = math.sqrt(math.fsum(residual**2 for residual in residuals) / (len(x) - 2))
    return Baseline(
        floor=floor,
        alpha=-slope,
        intercept=height - slope * mean,
        deviation=deviation,
        mean=mean,
        squares=squares,
        points=len(x),
        smallest=min(flops),
        largest=max(flops),
    )


def speedup_of(flops: float, loss: float, baseline: Baseline) -> Speedup:
    """The effective speedup of a run with this loss. Raises PowerLawError for a loss that is not above the floor."""
    from scipy.special import stdtrit

    value = effective_speedup(baseline.loss(flops), loss, baseline.floor, baseline.alpha)
    x = math.log(flops) - baseline.mean
    spread = baseline.deviation * math.sqrt(1 + 1 / baseline.points + x * x / baseline.squares)
    factor = math.exp(float(stdtrit(baseline.points - 2, (1 + CONFIDENCE) / 2)) * spread / baseline.alpha)
    is_within = baseline.smallest * (1 - SAME) <= flops <= baseline.largest * (1 + SAME)
    return Speedup(value=value, low=value / factor, high=value * factor, is_within=is_within)


def _require_points(flops: Sequence[float], losses: Sequence[float], floor: float | None, least: int) -> None:
    numbers = [*flops, *losses]
    if len(set(flops)) < least or len(flops) != len(losses):
        raise PowerLawError(
            f"A law has {len(set(flops))} points of different FLOPs, expected {least} or more. Train further sizes."
        )
    if not all(0 < number < math.inf for number in numbers):
        raise PowerLawError(f"A law has the numbers {numbers!r:.200}, expected finite ones above 0.")
    if floor is not None and min(losses) <= floor:
        raise PowerLawError(
            f"The smallest loss is {min(losses)!r}, which is not above the floor {floor!r}. Give the floor of this "
            "metric, below all losses."
        )
