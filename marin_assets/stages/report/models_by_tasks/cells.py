"""The cells of a table of models by tasks: scores, and differences from the baseline, those beyond noise marked."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from marin_assets.documents.scores import clustered_error
from marin_assets.stages.report.models_by_tasks.significance import (
    ALPHA,
    Difference,
    false_discovery_rates,
    independent,
    paired,
)

PASSAGE = "passage"
"""The field of an answer with the name of the text that its question shares with others."""
Samples: TypeAlias = Mapping[str, Mapping[Any, Mapping[str, Any]]]
"""Task -> id of the question -> the numbers of the answer, and its passage."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model at one task."""

    value: float
    error: float | None = None
    difference: float | None = None
    """From the baseline."""
    tested: Difference | None = None
    """The difference with its error; None without errors."""
    p_corrected: float | None = None
    """The p-value of the difference, after the correction for all differences."""
    outcome: str = ""
    """"better" or "worse" than the baseline by more than noise."""
    view: str = ""
    """The questions behind it, beside those of the baseline: an address or a command. Empty without answers."""


def cell_of(
    task: str,
    metric: str,
    name: str,
    baseline: str,
    scores: Mapping[str, Mapping[str, Any]],
    samples: Mapping[str, Samples],
) -> Cell:
    """One model at one task: value, error, and its difference from the baseline with the error of that."""
    mine, theirs = scores[name][task], scores[baseline].get(task, {})
    value, error = float(mine[metric]), mine.get(f"{metric}_stderr")
    if name == baseline or metric not in theirs:
        return Cell(value=value, error=error)
    other, other_error = float(theirs[metric]), theirs.get(f"{metric}_stderr")
    tested = paired_difference(metric, value - other, samples[name].get(task, {}), samples[baseline].get(task, {}))
    if tested is None and error is not None and other_error is not None:
        tested = independent(value - other, error, other_error)
    return Cell(value=value, error=error, difference=value - other, tested=tested)


def paired_difference(
    metric: str, difference: float, mine: Mapping[Any, Mapping[str, Any]], theirs: Mapping[Any, Mapping[str, Any]]
) -> Difference | None:
    """The mean difference over the same questions, tested; None if they are not the same, or one.

    `difference` is that of the scores: rows with another mean do not show its error, and None is returned.
    """
    if len(mine) < 2 or mine.keys() != theirs.keys():
        return None
    pairs = scored_pairs(metric, mine, theirs)
    if len(pairs) < len(mine):
        return None
    passages: list[Hashable] = [row.get(PASSAGE, place) for place, row in enumerate(mine.values())]
    tested = paired([my_score - their_score for my_score, their_score in pairs], passages)
    is_theirs = tested is not None and math.isclose(tested.value, difference, rel_tol=1e-6, abs_tol=1e-9)
    return tested if is_theirs else None


def corrected(cells: Mapping[str, Mapping[str, Cell]], lower: Mapping[str, bool]) -> dict[str, dict[str, Cell]]:
    """The cells with their p-values after the correction for all of them, and what is more than noise marked."""
    every = [(task, name, cell.tested) for task, of in cells.items() for name, cell in of.items()]
    tests = {(task, name): tested.p for task, name, tested in every if tested is not None}
    p_values = dict(zip(tests, false_discovery_rates(list(tests.values())), strict=True))

    def mark(task: str, name: str, cell: Cell) -> Cell:
        p = p_values.get((task, name))
        if p is None or p > ALPHA or not cell.difference:
            return replace(cell, p_corrected=p)
        return replace(cell, p_corrected=p, outcome="worse" if (cell.difference > 0) == lower[task] else "better")

    return {task: {name: mark(task, name, cell) for name, cell in of.items()} for task, of in cells.items()}


def scored_pairs(
    metric: str, mine: Mapping[Any, Mapping[str, Any]], theirs: Mapping[Any, Mapping[str, Any]]
) -> list[tuple[float, float]]:
    """The scores of both models at the same questions, of those that both have."""
    pairs = ((_number(row, metric), _number(theirs[key], metric)) for key, row in mine.items() if key in theirs)
    return [
        (my_score, their_score) for my_score, their_score in pairs if my_score is not None and their_score is not None
    ]


def mean_difference(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The mean of the differences of at least two pairs, the first less the second, and its standard error."""
    differences = [my_score - their_score for my_score, their_score in pairs]
    return math.fsum(differences) / len(differences), clustered_error(differences, range(len(differences)))


def _number(row: Mapping[str, Any], metric: str) -> float | None:
    value = row.get(metric)
    return float(value) if isinstance(value, int | float) else None
