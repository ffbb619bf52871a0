"""Approach 2 of Hoffmann et al. 2022: a parabola of the loss for each budget, and a line through their vertices.

It stands beside the law since people know it; the law decides. On exact data of a law it is biased: a grid of tokens
that is centred on the optimum shifts D* alone, one that drifts from it the exponent too. A vertex counts only if the
parabola opens upwards and has it within the sampled tokens, and in resamples if at least half of them have such a one
(Porian et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SAME_BUDGET = 1.1
"""Most by least FLOPs of the runs of one budget."""
LEAST_SIZES = 3
"""Sizes of models that determine a parabola."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The runs of a budget, and their parabola loss = c0 + c1 x + c2 x^2 with x = log10(tokens)."""

    flops: float
    """Geometric mean of its runs."""
    members: tuple[int, ...]
    """Numbers of its runs, from 0."""
    coefficients: tuple[float, float, float]
    tokens: float
    """At the vertex, also of one that does not count."""
    loss: float
    opens_upwards: bool
    inside: bool
    """Whether the vertex is within the sampled tokens."""

    @property
    def counts(self) -> bool:
        return self.opens_upwards and self.inside


@dataclass(frozen=True, kw_only=True)
class Parabolas:
    budgets: tuple[Budget, ...]
    exponent: float | None
    """b of D* = const C^b. None with fewer than two vertices that count."""
    exponents: Any
    """b of each resample that has one; empty if fewer than half have."""


def fit_parabolas(params: Any, tokens: Any, flops: Any, loss: Any, weights: Any) -> Parabolas:
    """Fit a parabola to each budget with at least three sizes, and the line. `weights`: see `refit`."""
    import numpy as np

    budgets = [_budget(members, tokens, flops, loss) for members in budgets_of(params, flops)]
    ones = np.ones((1, len(loss)))
    whole = _exponents(budgets, tokens, flops, loss, ones)
    drawn = _exponents(budgets, tokens, flops, loss, weights)
    finite = drawn[np.isfinite(drawn)]
    return Parabolas(
        budgets=tuple(budgets),
        exponent=float(whole[0]) if np.isfinite(whole[0]) else None,
        exponents=finite if 2 * len(finite) >= len(weights) else finite[:0],
    )


def budgets_of(params: Any, flops: Any) -> list[tuple[int, ...]]:
    """The numbers of the runs of each budget, from the least FLOPs to the most."""
    import numpy as np

    groups: list[list[int]] = []
    for run in np.argsort(flops, kind="stable"):
        if groups and flops[run] <= SAME_BUDGET * flops[groups[-1][0]]:
            groups[-1].append(int(run))
        else:
            groups.append([int(run)])
    return [tuple(sorted(group)) for group in groups if len({float(params[run]) for run in group}) >= LEAST_SIZES]


def _budget(members: tuple[int, ...], tokens: Any, flops: Any, loss: Any) -> Budget:
    import numpy as np

    x, y = np.log10(tokens[list(members)]), loss[list(members)]
    c2, c1, c0 = np.polyfit(x - x.mean(), y, 2)
    vertex = x.mean() - c1 / (2 * c2) if c2 else np.nan
    at_vertex = c0 - c1 * c1 / (4 * c2) if c2 else np.nan
    c1, c0 = c1 - 2 * c2 * x.mean(), c0 - c1 * x.mean() + c2 * x.mean() ** 2
    return Budget(
        flops=float(np.exp(np.log(flops[list(members)]).mean())),
        members=members,
        coefficients=(float(c0), float(c1), float(c2)),
        tokens=float(10.0 ** np.clip(vertex, -300, 300)),
        loss=float(at_vertex),
        opens_upwards=bool(c2 > 0),
        inside=bool(x.min() < vertex < x.max()),
    )


def _exponents(budgets: list[Budget], tokens: Any, flops: Any, loss: Any, weights: Any) -> Any:
    """The slope of log D* over log C of each row of weights; NaN with fewer than two vertices that count."""
    import numpy as np

    if not budgets:
        return np.full(len(weights), np.nan)
    vertices = np.stack([_vertices(budget, tokens, loss, weights) for budget in budgets], axis=1)
    budget_flops = np.log10([budget.flops for budget in budgets])
    counts = np.isfinite(vertices)
    number = counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        x_mean = (counts * budget_flops).sum(axis=1) / number
        x = np.where(counts, budget_flops - x_mean[:, None], 0.0)
        slopes = (x * np.where(counts, vertices, 0.0)).sum(axis=1) / (x * x).sum(axis=1)
    return np.where(number >= 2, slopes, np.nan)


def _vertices(budget: Budget, tokens: Any, loss: Any, weights: Any) -> Any:
    """log10 of the tokens at the vertex of each row of weights; NaN where it does not count."""
    import numpy as np

    members = list(budget.members)
    x, y, w = np.log10(tokens[members]), loss[members], weights[:, members]
    centre = x.mean()
    powers = np.stack([np.ones_like(x), x - centre, (x - centre) ** 2], axis=1)
    matrix = np.einsum("rn,ni,nj->rij", w, powers, powers)
    right = np.einsum("rn,ni,n->ri", w, powers, y)
    sizes = np.array([len({float(value) for value in x[row > 0]}) for row in w])
    vertices = np.full(len(weights), np.nan)
    solvable = sizes >= LEAST_SIZES
    if solvable.any():
        _, c1, c2 = np.linalg.solve(matrix[solvable], right[solvable][:, :, None])[:, :, 0].T
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = centre - c1 / (2 * c2)
        inside = (c2 > 0) & (x.min() < vertex) & (vertex < x.max())
        vertices[solvable] = np.where(inside, vertex, np.nan)
    return vertices
