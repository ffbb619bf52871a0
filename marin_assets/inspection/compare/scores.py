"""The scores of two sides: numbers in the results of the steps that evaluate, and of the last steps.

In:  a comparison.   Out: numbers of each of these steps on both sides; None where a side has not computed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from marin_assets.inspection.compare.compare import Comparison
from marin_assets.inspection.compare.side import SideStep
from marin_assets.stages.report.records import flat_numbers
from marin_resources.storage.output.notes.history import complete_record

THREADS = 16


@dataclass(frozen=True, kw_only=True)
class Score:
    step: str
    number: str
    """Place of the number in the result: "scores.arc.acc"."""
    a: float | int | None
    b: float | int | None

    @property
    def difference(self) -> float | int | None:
        return None if self.a is None or self.b is None else self.b - self.a


@dataclass(frozen=True, kw_only=True)
class Scores:
    scores: tuple[Score, ...]
    missing_a: tuple[str, ...]
    """Steps that A has and has not computed."""
    missing_b: tuple[str, ...]
    same: tuple[str, ...]
    """Steps of one version on both sides: they share an output."""


def scores_of(comparison: Comparison, prefix: str) -> Scores:
    """Raises UnavailableError."""
    names = [name for name in scored(comparison) if name not in comparison.same]
    both = [(side.steps.get(name), prefix) for name in names for side in (comparison.a, comparison.b)]
    with ThreadPoolExecutor(THREADS) as pool:
        read = list(pool.map(lambda arguments: _numbers(*arguments), both))
    of_a, of_b = dict(zip(names, read[::2], strict=True)), dict(zip(names, read[1::2], strict=True))
    return Scores(
        scores=tuple(score for name in names for score in _side_by_side(name, of_a[name] or {}, of_b[name] or {})),
        missing_a=tuple(name for name in names if name in comparison.a.steps and of_a[name] is None),
        missing_b=tuple(name for name in names if name in comparison.b.steps and of_b[name] is None),
        same=tuple(name for name in scored(comparison) if name in comparison.same),
    )


def scored(comparison: Comparison) -> list[str]:
    """The steps that have scores: those that evaluate, and the last of each side."""
    with_scores = {*comparison.a.sinks(), *comparison.b.sinks()}
    for side in (comparison.a, comparison.b):
        with_scores |= {step.name for step in side.steps.values() if step.evaluates}
    return [name for name in {**comparison.a.steps, **comparison.b.steps} if name in with_scores]


def _side_by_side(step: str, a: Mapping[str, float | int], b: Mapping[str, float | int]) -> list[Score]:
    return [Score(step=step, number=number, a=a.get(number), b=b.get(number)) for number in {**a, **b}]


def _numbers(step: SideStep | None, prefix: str) -> dict[str, float | int] | None:
    """The numbers in the result of a complete output, in place or removed; None if it is not computed."""
    if step is None:
        return None
    record = complete_record(prefix, step.path)
    if record is None:
        return None
    numbers = flat_numbers(record.result, "")
    return {number.removeprefix("."): value for number, value in numbers.items()}
