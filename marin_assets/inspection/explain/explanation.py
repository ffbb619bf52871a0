"""Explain why a materialization was computed: compare it with the newest complete output of the same step before it.

In:  a materialization, and all that are known of its step.   Out: an explanation.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marin_assets.inspection.explain.changed_inputs import ChangedInput, changed_inputs
from marin_assets.inspection.explain.materializations import LONG_AGO, Materialization
from marin_assets.inspection.explain.recorded_versions import RecordedVersions
from marin_assets.plan.reasons.differences import Differences, differences
from marin_resources.drift.drift import Drift, Kind, find_drift, not_recorded
from marin_resources.storage.files import names_in
from marin_resources.storage.output.attempts import FOLDER, read_attempt
from marin_resources.storage.paths import join
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

MOST_ATTEMPTS = 20
"""Earlier attempts that are read, from the last one back."""
NOTHING = Differences(fields=(), inputs=())

log = logging.getLogger(__name__)


class Why(enum.StrEnum):
    FIRST = "first"
    """No complete output of the step is known before it."""
    RECIPE = "recipe"
    """The output before was of another version."""
    AGAIN = "again"
    """This version was complete before, and is gone."""
    UNKNOWN = "unknown"
    """One of the two records has no version, as Marin's."""


@dataclass(frozen=True, kw_only=True)
class EarlierAttempt:
    """An attempt at the same output that did not complete it."""

    number: int
    outcome: str
    """"failed", "stopped", …; "died" if it recorded no end."""
    error: str


@dataclass(frozen=True, kw_only=True)
class Explanation:
    this: Materialization
    before: Materialization | None
    why: Why
    recipe: Differences
    """Differences of the step's own version."""
    inputs: tuple[ChangedInput, ...]
    """Inputs of another version than before, down to those that were changed themselves."""
    drift: tuple[Drift, ...]
    """Differences besides the recipe: unversioned fields, code, content of inputs, environment."""
    unknown: tuple[Kind, ...]
    """Kinds of facts that one of the two records lacks."""
    attempts: tuple[EarlierAttempt, ...]
    """Attempts at this output before the one that ended so; the oldest first."""
    gone: datetime | None = None
    """Time at which the same version was complete before; its output is gone."""


def explain(prefix: str, this: Materialization, history: Sequence[Materialization]) -> Explanation:
    """`history`: the materializations of the step. Raises UnavailableError."""
    before = before_of(this, history)
    marks = [] if this.removed else marks_of(this.path, this.attempt)
    was, now = (output.record.version if output is not None else None for output in (before, this))
    recipe = NOTHING
    if before is not None and was and now:
        recipe = differences(was, now, was_config=before.record.config, now_config=this.record.config)
    gone = _gone(marks, before, same=before is not None and was == now and bool(now))
    return Explanation(
        this=this,
        before=before,
        why=_why(before, gone, was, now),
        recipe=recipe,
        inputs=tuple(changed_inputs(recipe, RecordedVersions(prefix))),
        drift=_besides_the_recipe(before.record, this.record) if before is not None else (),
        unknown=not_recorded(before.record, this.record) if before is not None else (),
        attempts=tuple(_earlier(mark) for mark in marks if mark["attempt"] < this.attempt),
        gone=gone,
    )


def _why(before: Materialization | None, gone: datetime | None, was: Any, now: Any) -> Why:
    if gone is not None:
        return Why.AGAIN
    if before is None:
        return Why.FIRST
    return Why.RECIPE if was and now else Why.UNKNOWN


def _gone(marks: Sequence[Mapping[str, Any]], before: Materialization | None, *, same: bool) -> datetime | None:
    """Time at which the same version was complete before: of its record, or of the done-marker that the claim found."""
    if same and before is not None:
        return before.finished
    seconds = [mark["complete_before_s"] for mark in marks if mark.get("complete_before_s")]
    return datetime.fromtimestamp(max(seconds), UTC) if seconds else None


def before_of(this: Materialization, history: Sequence[Materialization]) -> Materialization | None:
    """The newest complete output that was finished before; `history` has the newest first."""
    at = this.finished or LONG_AGO
    return next(
        (earlier for earlier in history if earlier.complete and earlier.finished is not None and earlier.finished < at),
        None,
    )


def marks_of(path: str, attempt: int) -> list[dict[str, Any]]:
    """The marks of this attempt at an output, and of those before back to the last that completed it; the oldest first.

    Raises UnavailableError.
    """
    stems = (name.removesuffix(".json") for name in names_in(join(path, FOLDER)) if name.endswith(".json"))
    numbers = sorted((int(stem) for stem in stems if stem.isdecimal() and int(stem) <= attempt), reverse=True)
    marks: list[dict[str, Any]] = []
    for number in numbers[:MOST_ATTEMPTS]:
        try:
            mark = read_attempt(path, number)
        except (FileNotFoundError, ControlFileError) as error:
            log.warning("attempt %d is not known: %s", number, error)
            continue
        if number < attempt and mark.get("outcome") == "success":
            break
        marks.append({**mark, "attempt": number})
    return marks[::-1]


def _earlier(mark: Mapping[str, Any]) -> EarlierAttempt:
    return EarlierAttempt(number=mark["attempt"], outcome=mark.get("outcome") or "died", error=mark.get("error") or "")


def _besides_the_recipe(was: Record, now: Record) -> tuple[Drift, ...]:
    """The drift between two records, without the fields that both versions hold."""
    if now.format_version is None:  # Marin's
        return ()
    covered = _versioned(was) & _versioned(now)
    drift = find_drift(was, now, now.inputs or {})
    return tuple(
        difference for difference in drift if difference.kind is not Kind.CONFIG or difference.what not in covered
    )


def _versioned(record: Record) -> set[str]:
    return set(record.version.get("config") or {})
