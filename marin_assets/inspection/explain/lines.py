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
"""Of the first column."""
MOST_FIELDS, MOST_INPUTS = 20, 30
DIGITS_OF_A_COMMIT = 12
SAME = "the same"
CODE = (Kind.FUNCTION, Kind.SOURCE, Kind.PLUMBING)


def lines_of(found: Explanation, label: str) -> Iterator[str]:
    """The lines of one explanation; `label` is the step's name, with the key of a partition."""
    this, before = found.this, found.before
    state = "complete" if this.complete else "failed"
    state = f"{state}, and removed since" if this.removed else state
    yield f"{label}, version {this.version}, {_time(this)}: {state}"
    yield from _rows("why", [_why(found)])
    if this.record.error:
        yield from _rows("error", [str(this.record.error)])
    yield from _rows("attempts", [_attempt(each.number, each.outcome, each.error) for each in found.attempts])
    if before is not None:
        fields = [each.describe() for each in found.recipe.fields]
        yield from _rows("recipe", _most(fields, MOST_FIELDS, "fields") or [_same_recipe(found)])
        yield from _rows("inputs", list(_inputs(found)) or [_same(found, Kind.INPUT)])
        for name, kinds in (("config", (Kind.CONFIG,)), ("code", CODE), ("environment", (Kind.ENVIRONMENT,))):
            drift = [each.sentence() for each in found.drift if each.kind in kinds]
            known = Kind.SOURCE if name == "code" else kinds[0]
            yield from _rows(name, _most(drift, MOST_FIELDS, "changes") or [_same(found, known)])
        yield from _rows("commit", [_commits(before.record, this.record)])
    yield from _rows("made by", [made_by(this.record)])
    if before is not None:
        yield from _rows("before", [f"version {before.version}, {_time(before)}, {made_by(before.record)}"])


def line_in_list(each: Materialization) -> str:
    """One line of all that are known of a step."""
    state = "removed" if each.removed else "complete" if each.complete else "failed"
    return f"{_time(each)}  {each.version}  {state:8}  {made_by(each.record)}"


def made_by(record: Record) -> str:
    """Who computed it, where, with which commit, in which run, how long: as a phrase."""
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


def _why(found: Explanation) -> str:
    before, adopted = found.before, found.this.record.adopted
    if adopted:
        return f"it was not computed: it is adopted from {adopted.path!r}, as {adopted.why!r}"
    if found.gone is not None:
        return f"computed again: the same version was complete before, {_day_and_time(found.gone)}, and {_gone(found)}"
    if before is None:
        return "first output of this step"
    if found.why is Why.RECIPE:
        return f"its recipe changed: the newest output before was version {before.version}, complete {_time(before)}"
    return f"not known: no version is recorded of it, or of the output before, complete {_time(before)}"


def _gone(found: Explanation) -> str:
    """What has become of the output before."""
    if found.before is not None and found.before.finished == found.gone:
        return "it was collected or forced, and its record is kept"
    return "it was removed by hand or forced, as no record of it is left"


def _attempt(number: int, outcome: str, error: str) -> str:
    return f"attempt {number} {'was ' if outcome == 'stopped' else ''}{outcome}{f': {error}' if error else ''}"


def _inputs(found: Explanation) -> Iterator[str]:
    """The inputs of another version, below each what differs in it; then those of the same version and other bytes."""
    for each in found.inputs[:MOST_INPUTS]:
        indent = "  " * (each.depth - 1)
        yield f"{indent}{each.name}: {each.was[-6:]} -> {each.now[-6:]}{'' if each.differences else _not_known(each)}"
        for field in each.differences.fields[:MOST_FIELDS] if each.differences else ():
            yield f"{indent}  {field.describe()}"
        if each.differences is not None and not each.is_root:
            yield f"{indent}  because of {', '.join(below.name for below in each.differences.inputs)}"
    if len(found.inputs) > MOST_INPUTS:
        yield f"and {len(found.inputs) - MOST_INPUTS} more inputs; --json has all"
    versions = {each.name for each in found.inputs}
    of_content = (each for each in found.drift if each.kind is Kind.INPUT and each.what.split("[")[0] not in versions)
    yield from (_content(each) for each in of_content)


def _not_known(each: ChangedInput) -> str:
    return "; why is not known, as no record of one of them is left"


def _content(drift: Drift) -> str:
    return f"{drift.what}: the same version with other content, manifest {drift.was[:12]} -> {drift.now[:12]}"


def _same_recipe(found: Explanation) -> str:
    if found.why is Why.UNKNOWN:
        return "not recorded"
    return "its own fields are the same" if found.recipe.inputs else SAME


def _same(found: Explanation, kind: Kind) -> str:
    return "not recorded" if kind in found.unknown else SAME


def _commits(was: Record, now: Record) -> str:
    before, after = commit_of(was) or "not recorded", commit_of(now) or "not recorded"
    return f"{before} -> {after}" if before != after else after if after == "not recorded" else f"{SAME}, {after}"


def _time(each: Materialization) -> str:
    return "at an unknown time" if each.finished is None else _day_and_time(each.finished)


def _day_and_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _most(lines: Sequence[str], most: int, what: str) -> list[str]:
    more = [f"and {len(lines) - most} more {what}; --json has all"] if len(lines) > most else []
    return [*lines[:most], *more]


def _rows(name: str, values: Iterable[str]) -> Iterator[str]:
    """The name before the first line, and as much space before the others."""
    for place, value in enumerate(values):
        yield f"{name if place == 0 else '':{WIDTH}} {value}"
