"""The next actions, by which a cluster gets the slices that it shall have. No request is made here.

Everything may be repeated, and a process may die between any two actions: a decision depends on the file of wanted
slices and on the slices that exist, and on nothing that was remembered.

    a slot has no slice                      request its slice, unless it is too early
    its slice waits, is created, or is up    leave it
    its slice is spent or has failed, is     the slot advances to its next incarnation; then the old slice is of
    not created or does not join in time,    an earlier one
    or has a bad host and no step
    a slice of an earlier incarnation, or    delete it; the next one is requested when it is gone
    of a slot that is not wanted
    a request that Google has refused        send it again after a pause, which grows with each refusal in a row
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from marin_resources.clusters.cluster import Cluster, find_slice_type_or_raise
from marin_resources.infra.slices.desired_state import Refused, Slot, Wanted, place_of
from marin_resources.infra.slices.queued_resources import Phase, Queued

JOIN_TIMEOUT_S = 1800.0
"""A slice is replaced if its head answers and lacks a host of it for so long: an image of tens of GB takes minutes.

Not by the slice's age: a head that was started again has no host at first, and old slices need time to come back."""
CREATE_TIMEOUT_S = 2 * 3600.0
"""A slice that Google has capacity for, and has not created after so long, is replaced: the largest take minutes."""
DRAIN_TIMEOUT_S = 3600.0
"""A slice with a bad host that steps still use after so long is replaced: they make no checkpoint."""
FIRST_PAUSE_S = 60.0
"""Pause before a slice is requested again that Google could not create, or that did not join, and before a request that
was refused is sent again; doubled with each in a row."""
LONGEST_PAUSE_S = 1800.0
MOST_DOUBLINGS = 10
"""No float holds two to the power of a thousand failures."""


class Do(enum.Enum):
    CREATE = "request"
    DELETE = "delete"


@dataclass(frozen=True, kw_only=True)
class Action:
    do: Do
    name: str
    slot: Slot | None = None
    """The slot of a slice to request."""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Decision:
    wanted: Wanted
    """The slots with their next incarnations, to be stored before anything is done."""
    actions: tuple[Action, ...]
    replaced: tuple[tuple[str, str], ...] = ()
    """(name of a slice that is replaced, the reason)"""


def decide(
    cluster: Cluster,
    target: Wanted,
    existing: Iterable[Queued],
    now: float,
    *,
    joined: Mapping[str, int] | None = None,
    bad: Mapping[str, str] | None = None,
    in_use: Collection[str] = (),
) -> Decision:
    """Decide the actions of a pass.

    `joined`: name of a slice -> its hosts that are nodes of the cluster; None if the cluster does not answer, so that
    no slice is replaced for not having joined. `bad`: name of a slice -> the reason to replace it. `in_use`: those of
    the bad slices that steps have not left yet.
    """
    in_slots: dict[tuple[int, str], dict[int, Queued]] = {}
    for slice_ in existing:
        place = place_of(cluster, slice_.name)
        if place is not None:
            in_slots.setdefault((place.number, place.type), {})[place.incarnation] = slice_
    actions: list[Action] = []
    replaced: list[tuple[str, str]] = []
    after = target
    for slot in target.slots:
        by_incarnation = in_slots.pop((slot.number, slot.type), {})
        if by_incarnation and max(by_incarnation) > slot.incarnation:  # the file is an earlier one, restored
            after = after.replace_slot(replace(slot, incarnation=max(by_incarnation)))
            continue
        earlier = [slice_ for incarnation, slice_ in by_incarnation.items() if incarnation < slot.incarnation]
        actions += [_delete(slice_, slot.why or "replaced") for slice_ in earlier if slice_.phase is not Phase.DELETING]
        current = by_incarnation.get(slot.incarnation)
        if current is None:
            if not earlier and slot.not_before <= now:
                actions.append(Action(do=Do.CREATE, name=slot.name(cluster), slot=slot))
            continue
        why_bad = (bad or {}).get(current.name)
        changed = _changed(slot, current, now, joined, why_bad, current.name in in_use)
        if changed.incarnation != slot.incarnation:
            replaced.append((current.name, changed.why))
        after = after.replace_slot(changed)
    for by_incarnation in in_slots.values():
        for slice_ in by_incarnation.values():
            if target.has_had(cluster, slice_.name) and slice_.phase is not Phase.DELETING:
                actions.append(_delete(slice_, "not wanted"))
    due, refused = _due(target, actions, now)
    return Decision(wanted=replace(after, refused=refused), actions=due, replaced=tuple(replaced))


def _due(target: Wanted, actions: Sequence[Action], now: float) -> tuple[tuple[Action, ...], tuple[Refused, ...]]:
    """The actions whose pause after a refusal is over, and the refusals of all actions. The refusal of an action that
    is no longer to be done is dropped."""
    refused = {refusal.name: refusal for refusal in target.refused}
    due = tuple(action for action in actions if action.name not in refused or refused[action.name].not_before <= now)
    return due, tuple(refused[action.name] for action in actions if action.name in refused)


def after_refusals(target: Wanted, refused: Mapping[str, str], now: float) -> Wanted:
    """The target with the refusals of a pass. `refused`: name of a slice -> Google's sentence."""
    kept = tuple(refusal for refusal in target.refused if refusal.name not in refused)
    new = []
    for name, why in refused.items():
        before = target.refusal_of(name)
        count = before.count + 1 if before is not None else 1
        new.append(Refused(name=name, count=count, not_before=now + _pause_s(count), why=why))
    return replace(target, refused=(*kept, *new))


def _pause_s(count: int) -> float:
    """The pause after so many failures in a row."""
    return min(FIRST_PAUSE_S * 2 ** min(count - 1, MOST_DOUBLINGS), LONGEST_PAUSE_S)


def _delete(slice_: Queued, why: str) -> Action:
    return Action(do=Do.DELETE, name=slice_.name, why=why)


def _changed(
    slot: Slot, current: Queued, now: float, joined: Mapping[str, int] | None, bad: str | None, in_use: bool
) -> Slot:
    """The slot as it is from now on: of the same incarnation, or of the next one."""
    if current.phase is not Phase.STARTING:
        slot = replace(slot, starting_since=None)
    if bad is None:
        slot = replace(slot, draining_since=None)
    match current.phase:
        case Phase.SPENT:
            return _next(slot, now, current.why)
        case Phase.DELETING:
            return _next(slot, now, "deleted by hand")
        case Phase.FAILED:
            return _next(slot, now, current.why, failed=True)
        case Phase.STARTING:
            return _while_created(slot, now)
        case Phase.UP if bad is not None:
            return _while_drained(slot, now, bad, in_use)
        case Phase.UP if joined is not None:
            return _after_a_look(slot, now, joined.get(current.name, 0))
    return replace(slot, missing_since=None)


def _while_created(slot: Slot, now: float) -> Slot:
    since = slot.starting_since if slot.starting_since is not None else now
    if now - since < CREATE_TIMEOUT_S:
        return replace(slot, starting_since=since, missing_since=None)
    return _next(slot, now, f"was not created within {CREATE_TIMEOUT_S / 3600:.0f} hours", failed=True)


def _while_drained(slot: Slot, now: float, bad: str, in_use: bool) -> Slot:
    since = slot.draining_since if slot.draining_since is not None else now
    if in_use and now - since < DRAIN_TIMEOUT_S:
        return replace(slot, draining_since=since, missing_since=None)
    return _next(slot, now, bad)


def _after_a_look(slot: Slot, now: float, joined: int) -> Slot:
    """The slot of a slice that is up, when `joined` of its hosts are nodes of the cluster."""
    hosts = find_slice_type_or_raise(slot.type).hosts
    if joined >= hosts:
        return replace(slot, failures=0, missing_since=None)
    since = slot.missing_since if slot.missing_since is not None else now
    if now - since < JOIN_TIMEOUT_S:
        return replace(slot, missing_since=since)
    joiners = f"only {joined} of {hosts} hosts" if joined else "no host"
    return _next(slot, now, f"{joiners} joined the cluster within {JOIN_TIMEOUT_S / 60:.0f} minutes", failed=True)


def _next(slot: Slot, now: float, why: str, *, failed: bool = False) -> Slot:
    failures = slot.failures + 1 if failed else 0
    pause_s = _pause_s(failures) if failed else 0.0
    return replace(
        slot,
        incarnation=slot.incarnation + 1,
        not_before=now + pause_s,
        failures=failures,
        missing_since=None,
        starting_since=None,
        draining_since=None,
        why=why,
    )
