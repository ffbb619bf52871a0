"""The changes since the last version of each step, as lines of the page.

The newest earlier output of a step is compared field by field, as `marin plan` gives its reasons.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from marin_assets.experiment_page.page_steps import PageStep
from marin_assets.plan.reasons.differences import FieldChange
from marin_resources.scrub.scrubber import Scrubber

MOST = 100
"""Steps that are listed with their fields."""
MOST_FIELDS = 20


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A step that is of another version than its newest earlier output."""

    step: str
    fields: tuple[str, ...]
    """Phrases: "optimizer.lr: 0.003 -> 0.001"."""
    earlier: str
    """The output that it is compared with, and its day."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    own: tuple[Changed, ...]
    """Steps whose own fields have changed."""
    omitted: int
    """More such steps."""
    by_inputs: tuple[str, ...]
    """Names of steps that are of another version because of their inputs only."""
    not_recorded: tuple[str, ...]
    """Names of steps whose earlier version is not recorded."""
    first: int
    """Steps without an earlier version."""


def changes_of(steps: Sequence[PageStep], scrub: Scrubber) -> Changes:
    """The changes of all steps."""
    compared = [step for step in steps if step.why is not None]
    own = [step for step in compared if step.why is not None and step.why.own]
    unknown = [step for step in compared if step.why is not None and not step.why.own and not step.why.inputs]
    apart = {step.name for step in (*own, *unknown)}
    rest = [step.name for step in compared if step.name not in apart]
    return Changes(
        own=tuple(_changed(step, scrub) for step in own[:MOST]),
        omitted=max(0, len(own) - MOST),
        by_inputs=tuple(rest),
        not_recorded=tuple(step.name for step in unknown),
        first=len(steps) - len(compared),
    )


def _changed(step: PageStep, scrub: Scrubber) -> Changed:
    assert step.why is not None
    mark, fields = step.why.earlier, step.why.own
    day = datetime.fromtimestamp(mark.finished_s, UTC).strftime(" of %Y-%m-%d") if mark.finished_s else ""
    more = (f"and {len(fields) - MOST_FIELDS} more fields",) if len(fields) > MOST_FIELDS else ()
    return Changed(
        step=step.name,
        fields=(*(_describe(change, scrub) for change in fields[:MOST_FIELDS]), *more),
        earlier=f"{mark.name}-{mark.version}{day}",
    )


def _describe(change: FieldChange, scrub: Scrubber) -> str:
    """The change, its values scrubbed before long ones are cut."""
    name = change.field.rpartition(".")[2]
    was, now = (scrub.json({name: value})[scrub.text(name)] for value in (change.was, change.now))
    return dataclasses.replace(change, was=was, now=now).describe()
