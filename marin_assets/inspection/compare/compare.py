"""Compare two sides by step name: what differs itself, what differs only because of that, what one side alone has.

Pure: versions are compared. A step that has another name on the other side is another step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marin_assets.inspection.compare.side import Side, in_order
from marin_assets.plan.reasons.differences import FieldChange, differences


@dataclass(frozen=True, kw_only=True)
class StepChange:
    """A step that has another version on the other side."""

    name: str
    was: str
    """The six digits."""
    now: str
    fields: tuple[FieldChange, ...]
    """Versioned fields of the step itself that differ; inputs that are new or gone too."""
    inputs: tuple[str, ...]
    """Names of its inputs that are of another version."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    a: Side
    b: Side
    changed: tuple[StepChange, ...]
    """Steps whose own fields differ, inputs before readers."""
    because: tuple[StepChange, ...]
    """Steps that differ in their inputs alone."""
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    same: tuple[str, ...]
    unknown: tuple[str, ...]
    """Steps of which one version is not known."""


def compare(a: Side, b: Side) -> Comparison:
    both = [name for name in in_order({**b.steps, **{n: s for n, s in a.steps.items() if n not in b.steps}})]
    changed: list[StepChange] = []
    because: list[StepChange] = []
    same, unknown = [], []
    for name in (name for name in both if name in a.steps and name in b.steps):
        was, now = a.steps[name], b.steps[name]
        if was.version is None or now.version is None:
            unknown.append(name)
        elif was.hash == now.hash:
            same.append(name)
        else:
            difference = differences(was.version, now.version)
            change = StepChange(
                name=name,
                was=was.hash,
                now=now.hash,
                fields=difference.fields,
                inputs=tuple(dependency.name for dependency in difference.inputs),
            )
            (because if change.inputs and not change.fields else changed).append(change)
    return Comparison(
        a=a,
        b=b,
        changed=tuple(changed),
        because=tuple(because),
        only_a=tuple(name for name in a.steps if name not in b.steps),
        only_b=tuple(name for name in b.steps if name not in a.steps),
        same=tuple(same),
        unknown=tuple(unknown),
    )


def names_wholly_differ(comparison: Comparison) -> bool:
    """Whether the two sides have steps, and none of one name."""
    shared: Sequence[str] = (
        *comparison.same,
        *comparison.unknown,
        *(change.name for change in (*comparison.changed, *comparison.because)),
    )
    return not shared and bool(comparison.only_a) and bool(comparison.only_b)
