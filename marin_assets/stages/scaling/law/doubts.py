"""Sentences about a fit that cannot be trusted as it is. A good residual excludes none of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from marin_assets.stages.scaling.law.fit import Fit
from marin_assets.stages.scaling.law.points import AT_A_BOUND, LEAST_EXPONENT, MOST_EXPONENT

APART = 0.01
"""Share by which the second opinion may differ."""
AT_BOUNDS = 0.05
"""Share of the resamples that may have an exponent at a bound."""
MOST_CORRELATION = 0.98
"""Correlation of log params and log tokens from which the runs have one ratio of both."""
LEAST_CHANGE = 1e-3
"""Share of an exponent: on exact data the errors are those of rounding."""
FLOPS_APART = 0.1
NAMED = 3
NOTHING = 1e-6
"""Share of the loss below which a term is none."""


def doubts_of(fit: Fit, labels: Sequence[str], flops: Any, flops_per_parameter_token: float) -> list[str]:
    """The sentences, the gravest first: those of the law, then about the optimum of a budget."""
    return [*doubts_of_law(fit, labels), *_parabolas(fit), *_counting(fit, flops, flops_per_parameter_token)]


def doubts_of_law(fit: Fit, labels: Sequence[str]) -> list[str]:
    """The sentences about a law, without those about budgets."""
    return [*_terms(fit), *_bounds(fit), *_second_opinion(fit), *_influence(fit, labels), *_design(fit)]


def _terms(fit: Fit) -> Iterator[str]:
    law, points = fit.law, fit.points
    terms = {
        "params": law.A / points.params**law.alpha / points.loss,
        "tokens": law.B / points.tokens**law.beta / points.loss,
    }
    for name, share in terms.items():
        if share.max() < NOTHING:
            yield f"The loss does not depend on {name} in these runs, so neither exponent says anything."
    if (law.E / points.loss).max() < NOTHING:
        yield (
            "E is 0: the runs show no loss that is left with endless parameters and tokens, so forecasts far beyond "
            "them are too low."
        )


def _bounds(fit: Fit) -> Iterator[str]:
    for name in ("alpha", "beta"):
        value, drawn = getattr(fit.law, name), getattr(fit.resamples, name)
        if _at_bound(value):
            yield f"{name} is {value:.3g}, at the bound of the search: the runs do not determine it. Add runs."
        elif (share := float(_at_bound(drawn).mean())) > AT_BOUNDS:
            yield (
                f"{name} is at a bound of the search in {share:.0%} of the resamples, so a few runs determine it. Add "
                "runs."
            )


def _second_opinion(fit: Fit) -> Iterator[str]:
    floor = 1e-12 * len(fit.points)
    apart = abs(fit.second_objective - fit.objective) / max(fit.objective, floor)
    exponents = max(abs(getattr(fit.second, name) / getattr(fit.law, name) - 1) for name in ("alpha", "beta"))
    if (fit.second_objective > floor and apart > APART) or exponents > APART:
        yield (
            f"L-BFGS ends with alpha {fit.second.alpha:.4g} and beta {fit.second.beta:.4g} at an objective of "
            f"{fit.second_objective:.4g}, the projection with {fit.law.alpha:.4g} and {fit.law.beta:.4g} at "
            f"{fit.objective:.4g}: the objective has several minima or a flat valley."
        )


def _influence(fit: Fit, labels: Sequence[str]) -> Iterator[str]:
    for name, shifts in fit.influence().items():
        value, without = getattr(fit.law, name), getattr(fit.without, name)
        strongest = abs(shifts).argsort(kind="stable")[::-1]
        moving = [run for run in strongest if abs(shifts[run]) > 1 and abs(without[run] / value - 1) > LEAST_CHANGE]
        if not moving:
            continue
        first = moving[0]
        others = [repr(labels[run]) for run in moving[1:NAMED]]
        rest = f" and {len(moving) - 1 - len(others)} more" if len(moving) > NAMED else ""
        also = f"; without {' or '.join(others)}{rest} it also moves by more than one" if others else ""
        yield (
            f"Without the run {labels[first]!r} {name} is {without[first]:.3g} in place of "
            f"{value:.3g}, {abs(shifts[first]):.1f} standard errors away{also}."
        )


def _design(fit: Fit) -> Iterator[str]:
    import numpy as np

    correlation = float(np.corrcoef(fit.points.log_params, fit.points.log_tokens)[0, 1])
    if abs(correlation) > MOST_CORRELATION:
        yield (
            f"params and tokens change together (the correlation of their logs is {correlation:.3f}), so their effects "
            "cannot be separated. Add runs with other ratios of tokens to parameters."
        )


def _parabolas(fit: Fit) -> Iterator[str]:
    budgets = fit.parabolas.budgets
    down = [f"{budget.flops:.3g}" for budget in budgets if not budget.opens_upwards]
    if down:
        yield (
            f"The parabola of {_budgets(down)} opens downwards, so it has no best size. Add sizes on both sides of the "
            "optimum."
        )
    outside = [f"{budget.flops:.3g}" for budget in budgets if budget.opens_upwards and not budget.inside]
    if outside:
        yield (
            f"The vertex of {_budgets(outside)} is outside its runs, so it does not count. Add sizes beyond the best "
            "one."
        )
    drawn = fit.parabolas.exponents
    if fit.parabolas.exponent is not None and len(drawn):
        (low, high), (least, most) = fit.interval(drawn), fit.interval(fit.resamples.b)
        if low > most or high < least:
            yield (
                f"The two methods differ by more than their intervals: tokens grow by C^{fit.parabolas.exponent:.3f} "
                f"[{low:.3f}, {high:.3f}] in the parabolas, and by C^{fit.law.b:.3f} [{least:.3f}, {most:.3f}] in the "
                "law. Name the method with the result."
            )


def _counting(fit: Fit, flops: Any, flops_per_parameter_token: float) -> Iterator[str]:
    import numpy as np

    ratios = np.asarray(flops) / (fit.points.params * fit.points.tokens)
    middle = float(np.median(ratios))
    if abs(np.log(middle / flops_per_parameter_token)) > FLOPS_APART:
        yield (
            f"The FLOPs of the runs are {middle:.3g} times params times tokens ({ratios.min():.3g} to "
            f"{ratios.max():.3g}), and budgets are counted with {flops_per_parameter_token:.3g}. Count the parameters "
            "as the FLOPs do, or set flops_per_parameter_token."
        )


def _budgets(flops: Sequence[str]) -> str:
    more = f" and {len(flops) - NAMED} more" if len(flops) > NAMED else ""
    return f"the budget{'s' * (len(flops) > 1)} {', '.join(flops[:NAMED])}{more}"


def _at_bound(value: Any) -> Any:
    return (value <= LEAST_EXPONENT * AT_A_BOUND) | (value >= MOST_EXPONENT / AT_A_BOUND)
