"""The status of a cluster's slices, for people."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from marin_resources.clusters.cluster import Cluster, find_slice_type_or_raise
from marin_resources.infra.slices.desired_state import Refused, Slot, load, path_of, place_of
from marin_resources.infra.slices.queued_resources import Phase, Queued

TO_COME = "is requested next"
NOT_WANTED = "not wanted"
REFUSED = "is refused"
FINE = (Phase.WAITING.value, Phase.STARTING.value, Phase.UP.value, Phase.DELETING.value, TO_COME)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One slice that is wanted, or exists."""

    name: str
    type: str
    capacity: str
    state: str
    hosts: int
    joined: int | None
    """The number of its hosts that are nodes of the cluster; None if the head does not answer."""
    why: str


@dataclass(frozen=True, kw_only=True)
class Status:
    cluster: Cluster
    head_answers: bool
    owner: str
    """The controller that works now; empty if none does."""
    lines: tuple[Line, ...]

    @property
    def amiss(self) -> bool:
        return not self.head_answers or any(line.state not in FINE for line in self.lines)

    def as_dict(self) -> dict[str, Any]:
        return {
            "cluster": self.cluster.name,
            "zone": self.cluster.zone,
            "dashboard": self.cluster.dashboard,
            "head_answers": self.head_answers,
            "controller": self.owner or None,
            "slices": [asdict(line) for line in self.lines],
        }


def status_of(
    cluster: Cluster, existing: Sequence[Queued], joined: Mapping[str, int] | None, now: float | None = None
) -> Status:
    """The status, by the file of wanted slices. Raises WantedError and UnavailableError."""
    target, _ = load(path_of(cluster))
    now = time.time() if now is None else now
    by_name = {queued.name: queued for queued in existing}
    lines = []
    for slot in target.slots:
        current = by_name.pop(slot.name(cluster), None)
        state, why = _state(slot, current, target.refusal_of(slot.name(cluster)), now)
        lines.append(
            Line(
                name=slot.name(cluster),
                type=slot.type,
                capacity=slot.reservation or slot.capacity,
                state=state,
                hosts=find_slice_type_or_raise(slot.type).hosts,
                joined=None if joined is None else joined.get(slot.name(cluster), 0),
                why=why,
            )
        )
    lines += [_other(cluster, queued, joined) for queued in by_name.values()]
    owner = target.owner if now < target.owned_until else ""
    return Status(cluster=cluster, head_answers=joined is not None, owner=owner, lines=tuple(lines))


def _state(slot: Slot, current: Queued | None, refused: Refused | None, now: float) -> tuple[str, str]:
    """The state of a slot's slice, and the reason."""
    if current is None and refused is not None:
        times = "once" if refused.count == 1 else f"{refused.count} times"
        return REFUSED, f"{times}, again in {max(refused.not_before - now, 0):.0f} s: {refused.why}"
    if current is not None and slot.draining_since is not None:
        return current.phase.value, f"steps leave it since {now - slot.draining_since:.0f} s, as it has a bad host"
    if current is not None and slot.starting_since is not None:
        return current.phase.value, current.why or f"since {now - slot.starting_since:.0f} s"
    waits = f"again in {slot.not_before - now:.0f} s: {slot.why}" if slot.not_before > now else slot.why
    return (TO_COME, waits) if current is None else (current.phase.value, current.why or waits)


def _other(cluster: Cluster, queued: Queued, joined: Mapping[str, int] | None) -> Line:
    """The line of a slice that is not wanted, or not yet gone."""
    place = place_of(cluster, queued.name)
    kind = place.type if place is not None else "?"
    return Line(
        name=queued.name,
        type=kind,
        capacity="",
        state=queued.phase.value if queued.phase is Phase.DELETING else NOT_WANTED,
        hosts=find_slice_type_or_raise(kind).hosts if place is not None else 0,
        joined=None if joined is None else joined.get(queued.name, 0),
        why=queued.why,
    )
