"""Numbers of preferences: win rates with their errors, the bias by position, the correlation with length.

A preference is that for the model's answer, from 0 to 1, of one instruction. The win rate is their mean, as in Li et
al. 2023, AlpacaEval; with preferences from log-probabilities it is the weighted one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marin_assets.documents.scores import clustered_error
from marin_assets.stages.judge.length_control import length_controlled

WIN_RATE, CONTROLLED, DISCRETE = "win_rate", "length_controlled_win_rate", "discrete_win_rate"


@dataclass(frozen=True, kw_only=True)
class Preference:
    """The preference at an instruction."""

    value: float
    category: str | None
    longer: int
    """Characters of the model's answer, less those of the baseline's."""
    difficulty: float | None
    first_preferred: tuple[float, ...]
    """For each judgement how much the answer that stood first is preferred; none for equal answers."""


def mean_scores(name: str, values: Sequence[float], groups: Sequence[str] | None = None) -> dict[str, float]:
    """The mean as `name`, and its standard error as `name`_stderr if two groups exist. Empty without values.

    `groups` has the group of each value, of questions that are not independent; None: each is its own.
    """
    if not values:
        return {}
    mean = math.fsum(values) / len(values)
    groups = list(map(str, range(len(values)))) if groups is None else groups
    return {name: mean, **({f"{name}_stderr": clustered_error(values, groups)} if len(set(groups)) > 1 else {})}


def task_scores(preferences: Sequence[Preference]) -> dict[str, float]:
    """instances, and the three win rates with their errors: the mean preference, that without the effect of length, and
    that of preferences rounded to a win, a tie or a loss. Empty without preferences."""
    if not preferences:
        return {}
    values = [preference.value for preference in preferences]
    difficulties = [preference.difficulty for preference in preferences if preference.difficulty is not None]
    controlled = length_controlled(
        values,
        [preference.longer for preference in preferences],
        difficulties if len(difficulties) == len(preferences) else None,
    )
    return {
        "instances": len(values),
        **mean_scores(WIN_RATE, values),
        **({CONTROLLED: controlled[0], f"{CONTROLLED}_stderr": controlled[1]} if controlled else {}),
        **mean_scores(DISCRETE, [(value > 0.5) + (value == 0.5) / 2 for value in values]),
    }


def category_scores(task: str, preferences: Sequence[Preference]) -> dict[str, dict[str, float]]:
    """By "<task>/<category>": instances, and the win rate with its error. Empty if no instruction has a category."""
    categories = sorted({preference.category for preference in preferences if preference.category is not None})
    by_category = {name: [p.value for p in preferences if p.category == name] for name in categories}
    return {
        f"{task}/{name}": {"instances": len(values), **mean_scores(WIN_RATE, values)}
        for name, values in by_category.items()
    }


def biases(preferences: Sequence[Preference]) -> dict[str, float]:
    """Numbers about the judge.

    first_preferred: the mean preference for the answer that stands first, 0.5 of a judge without a bias by position;
    with both orders also order_agreement: the share of instructions at which both prefer the same answer.
    length_correlation: Pearson's, of preference and difference of lengths, if both vary.
    """
    judged = [preference for preference in preferences if preference.first_preferred]
    firsts = [(value, str(place)) for place, p in enumerate(judged) for value in p.first_preferred]
    numbers = mean_scores("first_preferred", [value for value, _ in firsts], [group for _, group in firsts])
    twice = [p.first_preferred for p in judged if len(p.first_preferred) == 2]
    if twice:
        agreed = [(first - 0.5) * (0.5 - second) > 0 or first == second == 0.5 for first, second in twice]
        numbers["order_agreement"] = sum(agreed) / len(agreed)
    correlation = _correlation([(p.value, float(p.longer)) for p in preferences])
    return {**numbers, **({} if correlation is None else {"length_correlation": correlation})}


def outcomes(preferences: Sequence[Preference]) -> Mapping[str, int]:
    return {
        "wins": sum(preference.value > 0.5 for preference in preferences),
        "losses": sum(preference.value < 0.5 for preference in preferences),
        "ties": sum(preference.value == 0.5 for preference in preferences),
    }


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    from statistics import StatisticsError, correlation

    try:
        return correlation([value for value, _ in pairs], [length for _, length in pairs])
    except StatisticsError:  # fewer than two, or one side does not vary
        return None
