"""Steps of a plan with one action for one reason, as one group: a change at the root of 500 steps is a few lines.

A group has the steps that changed for the same reason, all new steps, or all that are blocked by the same input. Many
reasons that differ in their values alone, such as those of a sweep, are one group. The groups come in the order in
which people act on them: blocked, run, wait, reuse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.plan.estimates import Total, total_of
from marin_assets.plan.plan import Action, Kind, Planned
from marin_assets.step.origin import Origins

MOST_ALIKE = 3
"""Groups that differ in the values of the same fields alone. More are one group, which shows as many reasons."""
ORDER = (Action.BLOCKED, Action.RUN, Action.WAIT, Action.REUSE)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Planned outputs with one action for one reason, inputs first."""

    items: tuple[Planned, ...]
    reason: str

    @property
    def action(self) -> Action:
        return self.items[0].action

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of its steps, each once."""
        return tuple(dict.fromkeys(item.node.name for item in self.items))

    @property
    def bytes(self) -> int:
        """The size of its complete outputs, as far as their sizes are known."""
        return sum(item.bytes or 0 for item in self.items)

    @property
    def origins(self) -> Origins:
        """The data sets that its own steps download, by their names."""
        steps = {item.node.name: item.node.step for item in self.items}
        return {name: step.origin for name, step in steps.items() if step.origin is not None}

    @property
    def total(self) -> Total:
        """The cost of computing it."""
        return total_to_compute(self.items)


def total_to_compute(planned: Iterable[Planned]) -> Total:
    """The cost of all that runs, and of all that would run if the machine had what it lacks."""
    return total_of(item.expected for item in planned if item.action is Action.RUN or item.expected is not None)


def groups_of(planned: Iterable[Planned]) -> list[Group]:
    """The groups of a plan, in the order of `ORDER`, each where its first step is in the plan."""
    every, grouped = list(planned), dict[tuple[Any, ...], list[Planned]]()
    keys: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for item in every:
        if (fields := _fields(item)) is not None:
            keys.setdefault(fields, set()).add(_key(item))
    for item in every:
        fields = _fields(item)
        many = fields is not None and len(keys[fields]) > MOST_ALIKE
        grouped.setdefault(fields if fields is not None and many else _key(item), []).append(item)
    groups = [Group(items=tuple(items), reason=_reason(items)) for items in grouped.values()]
    return sorted(groups, key=lambda group: ORDER.index(group.action))


def alike(planned: Sequence[Planned]) -> list[list[Planned]]:
    """The partitions of one step with the same action, reason and cluster together; every other output by itself."""
    grouped: dict[tuple[Any, ...], list[Planned]] = {}
    for item in planned:
        where = None if item.site is None else (item.site.cluster, item.site.why)
        key = (item.node.output,) if item.node.key is None else (item.node.step, item.action, item.reason, where)
        grouped.setdefault(key, []).append(item)
    return list(grouped.values())


def counts_of(planned: Sequence[Planned]) -> str:
    """A phrase: "499 to run, 1 to reuse"."""
    counts = Counter(item.action for item in planned)
    shown = {action: action if action is Action.BLOCKED else f"to {action}" for action in Action}
    return ", ".join(f"{counts[action]:,} {shown[action]}" for action in Action if counts[action])


def _key(item: Planned) -> tuple[Any, ...]:
    """New steps are one group, whatever they read; every other group has one reason."""
    where = None if item.site is None else (item.site.cluster, item.site.why)
    return item.action, item.kind, where, "" if item.kind in (Kind.NEW, Kind.INPUT_BLOCKED) else item.reason


def _fields(item: Planned) -> tuple[Any, ...] | None:
    """The subject of the reason, without its values: fields that changed or drifted, or that an attempt failed; None
    for another reason."""
    about: tuple[Any, ...]
    if item.why is not None:
        changes = ((cause.step == item.node.name, cause.change and cause.change.field) for cause in item.why.causes)
        about = tuple(changes)
    elif item.drift:
        about = tuple((drift.kind, drift.what) for drift in item.drift)
    elif item.kind is Kind.FAILED:
        about = ()
    else:
        return None
    where = None if item.site is None else (item.site.cluster, item.site.why)
    return item.action, item.kind, where, about


def _reason(items: Sequence[Planned]) -> str:
    if items[0].kind in (Kind.NEW, Kind.INPUT_BLOCKED) and len(items) > 1:
        return "no output of this step yet" if items[0].kind is Kind.NEW else "an input is blocked"
    reasons = list(dict.fromkeys(item.reason for item in items))
    if len(reasons) == 1:
        return reasons[0]
    other = "errors" if items[0].kind is Kind.FAILED else "values"
    return "; ".join([*reasons[:MOST_ALIKE], f"and {len(reasons) - MOST_ALIKE:,} more with other {other}"])
