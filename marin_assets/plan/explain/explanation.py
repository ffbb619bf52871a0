"""Why a materialization was computed: against the newest complete output of the same step before it.

In:  a materialization, and all that are known of its step.   Out: an explanation.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from marin_assets.plan.explain.changed_inputs import ChangedInput, changed_inputs
from marin_assets.plan.explain.materializations import LONG_AGO, Materialization, version_recorded
from marin_assets.plan.reasons.differences import Differences, differences
from marin_resources.drift.drift import Drift, Kind, find_drift, not_recorded
from marin_resources.storage.files import names_in
from marin_resources.storage.output.attempts import FOLDER, read_attempt
from marin_resources.storage.paths import join
from marin_resources.versioned_json import ControlFileError

MOST_ATTEMPTS = 20
"""Of the attempts before, the last ones are read."""
NOTHING = Differences(fields=(), inputs=())

log = logging.getLogger(__name__)


class Why(enum.StrEnum):
    FIRST = "first"
    """No complete output of the step is known before it."""
    RECIPE = "recipe"
    """The output before was of another version."""
    AGAIN = "again"
    """The same version was complete before."""
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
    """Of the step's own version."""
    inputs: tuple[ChangedInput, ...]
    """Of another version than before, down to what was changed itself."""
    drift: tuple[Drift, ...]
    """What differs besides the recipe: unversioned fields, code, content of inputs, environment."""
    unknown: tuple[Kind, ...]
    """What one of the two records does not say."""
    attempts: tuple[EarlierAttempt, ...]
    """At this output, before the one that ended so; the oldest first."""


def explain(prefix: str, this: Materialization, known: Sequence[Materialization]) -> Explanation:
    """`known`: the materializations of the step. Raises UnavailableError."""
    before = before_of(this, known)
    attempts = () if this.removed else earlier_attempts(this.path, this.attempt)
    if before is None:
        return Explanation(
            this=this, before=None, why=Why.FIRST, recipe=NOTHING, inputs=(), drift=(), unknown=(), attempts=attempts
        )
    was, now = before.record.get("version"), this.record.get("version")
    recipe = differences(was, now) if was and now else NOTHING
    why = Why.UNKNOWN if not (was and now) else Why.AGAIN if was == now else Why.RECIPE
    return Explanation(
        this=this,
        before=before,
        why=why,
        recipe=recipe,
        inputs=tuple(changed_inputs(recipe, cache(partial(version_recorded, prefix)))),
        drift=_besides_the_recipe(before.record, this.record),
        unknown=not_recorded(before.record, this.record),
        attempts=attempts,
    )


def before_of(this: Materialization, known: Sequence[Materialization]) -> Materialization | None:
    """The newest complete output that was finished before; `known` has the newest first."""
    at = this.finished or LONG_AGO
    return next((each for each in known if each.complete and each.finished is not None and each.finished < at), None)


def earlier_attempts(path: str, attempt: int) -> tuple[EarlierAttempt, ...]:
    """The attempts at an output before this one, back to the last that completed it. Raises UnavailableError."""
    stems = (name.removesuffix(".json") for name in names_in(join(path, FOLDER)) if name.endswith(".json"))
    numbers = sorted((int(stem) for stem in stems if stem.isdecimal() and int(stem) < attempt), reverse=True)
    found: list[EarlierAttempt] = []
    for number in numbers[:MOST_ATTEMPTS]:
        try:
            mark = read_attempt(path, number)
        except (FileNotFoundError, ControlFileError) as error:
            log.warning("attempt %d is not known: %s", number, error)
            continue
        if mark.get("outcome") == "success":
            break
        found.append(
            EarlierAttempt(number=number, outcome=mark.get("outcome") or "died", error=mark.get("error") or "")
        )
    return tuple(reversed(found))


def _besides_the_recipe(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Drift, ...]:
    """The drift between two records, without the fields that both versions hold."""
    if "format_version" not in now:  # Marin's
        return ()
    covered = _versioned(was) & _versioned(now)
    found = find_drift(was, now, now.get("inputs") or {})
    return tuple(each for each in found if each.kind is not Kind.CONFIG or each.what not in covered)


def _versioned(record: Mapping[str, Any]) -> set[str]:
    return set((record.get("version") or {}).get("config") or {})
