"""A comparison as lines for people: first what differs itself, then what differs because of it, then the scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marin_assets.inspection.compare.compare import Comparison, StepChange, names_wholly_differ
from marin_assets.inspection.compare.scores import Score, Scores

SHOWN_NAMES = 8
SHOWN_FIELDS = 20
SHOWN_SCORES = 60


def lines_of(found: Comparison, scores: Scores) -> Iterator[str]:
    yield f"A  {found.a.title}: {_steps(len(found.a.steps))}"
    yield f"B  {found.b.title}: {_steps(len(found.b.steps))}"
    yield from (side.note for side in (found.a, found.b) if side.note)
    if names_wholly_differ(found):
        yield "No step of A has the name of a step of B. Steps are compared by name alone."
    for each in found.changed:
        yield from _changed(each)
    if found.because:
        names = [each.name for each in found.because]
        verb, whose = ("differs", "its") if len(names) == 1 else ("differ", "their")
        yield f"{_steps(len(names))} {verb} only because of {whose} inputs: {_listed(names)}"
    for what, some in (("only in A", found.only_a), ("only in B", found.only_b), ("without a version", found.unknown)):
        if some:
            yield f"{what}: {_listed(some)}"
    if found.same and not (found.changed or found.because or found.only_a or found.only_b or found.unknown):
        yield f"A and B are the same {_steps(len(found.same))}"
    elif found.same:
        yield f"{_steps(len(found.same))} the same"
    yield from _scores(scores)


def _changed(each: StepChange) -> Iterator[str]:
    yield f"{each.name}: {each.was} -> {each.now}"
    yield from (f"    {field.describe()}" for field in each.fields[:SHOWN_FIELDS])
    if len(each.fields) > SHOWN_FIELDS:
        yield f"    and {len(each.fields) - SHOWN_FIELDS} more fields; --json has all"
    if not each.fields and not each.inputs:
        yield "    the order of its inputs"
    if each.inputs:
        yield f"    and because of {_listed(each.inputs)}"


def _scores(scores: Scores) -> Iterator[str]:
    rows = [_row(each) for each in scores.scores[:SHOWN_SCORES]]
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
