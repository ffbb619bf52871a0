"""An explanation as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from marin_assets.inspection.explain.changed_inputs import ChangedInput
from marin_assets.inspection.explain.explanation import Explanation, Why
from marin_assets.inspection.explain.materializations import Materialization
from marin_resources.drift.drift import Drift, Kind
from marin_resources.types.record import Record

WIDTH = 12
"""Characters of the first column."""
MOST_FIELDS, MOST_INPUTS = 20, 30
DIGITS_OF_A_COMMIT = 12
SAME = "the same"
CODE = (Kind.FUNCTION, Kind.SOURCE, Kind.PLUMBING)


def lines_of(explanation: Explanation, label: str) -> Iterator[str]:
    """The lines of one explanation; `label` is the step's name, with the key of a partition."""
    this, before = explanation.this, explanation.before
    state = "complete" if this.complete else "failed"
    state = f"{state}, and removed since" if this.removed else state
    yield f"{label}, version {this.version}, {_time(this)}: {state}"
    yield from _rows("why", [_why(explanation)])
    if this.record.error:
        yield from _rows("error", [str(this.record.error)])
    yield from _rows(
        "attempts", [_attempt(attempt.number, attempt.outcome, attempt.error) for attempt in explanation.attempts]
    )
    if before is not None:
        fields = [field.describe() for field in explanation.recipe.fields]
        yield from _rows("recipe", _most(fields, MOST_FIELDS, "fields") or [_same_recipe(explanation)])
        yield from _rows("inputs", list(_inputs(explanation)) or [_same(explanation, Kind.INPUT)])
        for name, kinds in (("config", (Kind.CONFIG,)), ("code", CODE), ("environment", (Kind.ENVIRONMENT,))):
            drift = [difference.sentence() for difference in explanation.drift if difference.kind in kinds]
            kind = Kind.SOURCE if name == "code" else kinds[0]
            yield from _rows(name, _most(drift, MOST_FIELDS, "changes") or [_same(explanation, kind)])
        yield from _rows("commit", [_commits(before.record, this.record)])
    yield from _rows("made by", [made_by(this.record)])
    if before is not None:
        yield from _rows("before", [f"version {before.version}, {_time(before)}, {made_by(before.record)}"])


def line_in_list(materialization: Materialization) -> str:
    """One line of all that are known of a step."""
    state = "removed" if materialization.removed else "complete" if materialization.complete else "failed"
    return f"{_time(materialization)}  {materialization.version}  {state:8}  {made_by(materialization.record)}"


def made_by(record: Record) -> str:
    """The user, machine, cluster, commit, run, attempt and duration of a record, as a phrase."""
    seconds, cluster = record.duration_s, record.cluster or (record.job.dashboard if record.job else None)
    parts = [
        f"{record.user or 'someone'} on {record.host or 'an unknown machine'}",
        f"cluster {cluster}" if cluster else "",
        f"commit {commit_of(record)}" if commit_of(record) else "",
        f"run {record.dagster_run_id}" if record.dagster_run_id else "",
        f"attempt {record.attempt}" if record.attempt else "",
        f"{seconds:,.1f} s" if seconds is not None else "",
    ]
    return ", ".join(filter(None, parts))


def commit_of(record: Record) -> str | None:
    """The commit of the step's code, and whether the checkout had changes; None if it is not recorded."""
    git = record.git or {}
    if not git.get("commit"):
        return None
    return f"{str(git['commit'])[:DIGITS_OF_A_COMMIT]}{' with changes' if git.get('dirty') else ''}"


def _why(explanation: Explanation) -> str:
    before, adopted = explanation.before, explanation.this.record.adopted
    if adopted:
        return f"it was not computed: it is adopted from {adopted.path!r}, as {adopted.why!r}"
    if explanation.gone is not None:
        return (
            f"computed again: the same version was complete before, {_day_and_time(explanation.gone)}, "
            f"and {_gone(explanation)}"
        )
    if before is None:
        return "first output of this step"
    if explanation.why is Why.RECIPE:
        return f"its recipe changed: the newest output before was version {before.version}, complete {_time(before)}"
    return f"not known: no version is recorded of it, or of the output before, complete {_time(before)}"


def _gone(explanation: Explanation) -> str:
    """The fate of the output before, as a phrase."""
    if explanation.before is not None and explanation.before.finished == explanation.gone:
        return "it was collected or forced, and its record is kept"
    return "it was removed by hand or forced, as no record of it is left"


def _attempt(number: int, outcome: str, error: str) -> str:
    return f"attempt {number} {'was ' if outcome == 'stopped' else ''}{outcome}{f': {error}' if error else ''}"


def _inputs(explanation: Explanation) -> Iterator[str]:
    """The inputs of another version, below each what differs in it; then those of the same version and other bytes."""
    for changed in explanation.inputs[:MOST_INPUTS]:
        indent = "  " * (changed.depth - 1)
        yield (
            f"{indent}{changed.name}: {changed.was[-6:]} -> {changed.now[-6:]}"
            f"{'' if changed.differences else _not_known(changed)}"
        )
        for field in changed.differences.fields[:MOST_FIELDS] if changed.differences else ():
            yield f"{indent}  {field.describe()}"
        if changed.differences is not None and not changed.is_root:
            yield f"{indent}  because of {', '.join(below.name for below in changed.differences.inputs)}"
    if len(explanation.inputs) > MOST_INPUTS:
        yield f"and {len(explanation.inputs) - MOST_INPUTS} more inputs; --json has all"
    versions = {changed.name for changed in explanation.inputs}
    of_content = (
        difference
        for difference in explanation.drift
        if difference.kind is Kind.INPUT and difference.what.split("[")[0] not in versions
    )
    yield from (_content(difference) for difference in of_content)


def _not_known(changed: ChangedInput) -> str:
    return "; why is not known, as no record of one of them is left"


def _content(drift: Drift) -> str:
    return f"{drift.what}: the same version with other content, manifest {drift.was[:12]} -> {drift.now[:12]}"


def _same_recipe(explanation: Explanation) -> str:
    if explanation.why is Why.UNKNOWN:
        return "not recorded"
    return "its own fields are the same" if explanation.recipe.inputs else SAME


def _same(explanation: Explanation, kind: Kind) -> str:
    return "not recorded" if kind in explanation.unknown else SAME


def _commits(was: Record, now: Record) -> str:
    before, after = commit_of(was) or "not recorded", commit_of(now) or "not recorded"
    return f"{before} -> {after}" if before != after else after if after == "not recorded" else f"{SAME}, {after}"


def _time(materialization: Materialization) -> str:
    return "at an unknown time" if materialization.finished is None else _day_and_time(materialization.finished)


def _day_and_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _most(lines: Sequence[str], most: int, noun: str) -> list[str]:
    more = [f"and {len(lines) - most} more {noun}; --json has all"] if len(lines) > most else []
    return [*lines[:most], *more]


def _rows(name: str, values: Iterable[str]) -> Iterator[str]:
    """The name before the first line, and as much space before the others."""
    for place, value in enumerate(values):
        yield f"{name if place == 0 else '':{WIDTH}} {value}"
