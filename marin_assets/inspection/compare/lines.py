"""A comparison as lines for people: first what differs itself, then what differs because of it, then the scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marin_assets.inspection.compare.compare import Comparison, StepChange, names_wholly_differ
from marin_assets.inspection.compare.scores import Score, Scores

SHOWN_NAMES = 8
SHOWN_FIELDS = 20
SHOWN_SCORES = 60


def lines_of(comparison: Comparison, scores: Scores) -> Iterator[str]:
    yield f"A  {comparison.a.title}: {_steps(len(comparison.a.steps))}"
    yield f"B  {comparison.b.title}: {_steps(len(comparison.b.steps))}"
    yield from (side.note for side in (comparison.a, comparison.b) if side.note)
    if names_wholly_differ(comparison):
        yield "No step of A has the name of a step of B. Steps are compared by name alone."
    for change in comparison.changed:
        yield from _changed(change)
    if comparison.because:
        names = [change.name for change in comparison.because]
        verb, whose = ("differs", "its") if len(names) == 1 else ("differ", "their")
        yield f"{_steps(len(names))} {verb} only because of {whose} inputs: {_listed(names)}"
    for heading, steps in (
        ("only in A", comparison.only_a),
        ("only in B", comparison.only_b),
        ("without a version", comparison.unknown),
    ):
        if steps:
            yield f"{heading}: {_listed(steps)}"
    if comparison.same and not (
        comparison.changed or comparison.because or comparison.only_a or comparison.only_b or comparison.unknown
    ):
        yield f"A and B are the same {_steps(len(comparison.same))}"
    elif comparison.same:
        yield f"{_steps(len(comparison.same))} the same"
    yield from _scores(scores)


def _changed(change: StepChange) -> Iterator[str]:
    yield f"{change.name}: {change.was} -> {change.now}"
    yield from (f"    {field.describe()}" for field in change.fields[:SHOWN_FIELDS])
    if len(change.fields) > SHOWN_FIELDS:
        yield f"    and {len(change.fields) - SHOWN_FIELDS} more fields; --json has all"
    if not change.fields and not change.inputs:
        yield "    the order of its inputs"
    if change.inputs:
        yield f"    and because of {_listed(change.inputs)}"


def _scores(scores: Scores) -> Iterator[str]:
    rows = [_row(score) for score in scores.scores[:SHOWN_SCORES]]
    if rows:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        yield "scores"
        previous = ""
        for step, number, *values in rows:
            if step != previous:
                yield f"  {step}"
                previous = step
            shown = "  ".join(f"{text:>{width}}" for text, width in zip(values, widths[2:], strict=True))
            yield f"    {number:{widths[1]}}  {shown}".rstrip()
    if len(scores.scores) > SHOWN_SCORES:
        yield f"  and {len(scores.scores) - SHOWN_SCORES} more numbers; --json has all"
    for names, side in ((scores.missing_a, "A"), (scores.missing_b, "B")):
        if names:
            yield f"not computed in {side}: {_listed(names)}"
    if scores.same:
        yield f"the same output in both: {_listed(scores.same)}"


def _row(score: Score) -> tuple[str, str, str, str, str]:
    difference = "" if score.difference is None else f"{score.difference:+.6g}"
    return score.step, score.number, _number(score.a), _number(score.b), difference


def _number(value: float | int | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"
