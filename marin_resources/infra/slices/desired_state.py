"""The slices that a cluster shall have: a control file in its prefix, <prefix>/.marin/clusters/<name>.json.

A *slot* is one wanted slice. Google's slice in it changes: a preempted one is followed by the next *incarnation*. The
name of a slice has both, <cluster>-<type>-<slot>-<incarnation>, so that a request that is sent twice, by whomever,
creates one slice, and an older slice is recognised by its name alone. Numbers of slots are never used again.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from marin_resources.clusters.cluster import Cluster
from marin_resources.configuration.settings import SettingError
from marin_resources.storage.control.control import read, write
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.paths import join

FORMAT = 1


class WantedError(SettingError):
    """The file of wanted slices cannot be used: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One wanted slice."""

    number: int
    type: str
    capacity: str
    reservation: str = ""
    incarnation: int = 1
    """The incarnation of the slice that is in the slot now, or comes next."""
    not_before: float = 0.0
    """The time, in seconds since 1970, before which the slice is not requested."""
    failures: int = 0
    """Number of slices in a row that Google could not create, or that did not join."""
    missing_since: float | None = None
    """The time since which the head answers and lacks hosts of the slice, in seconds since 1970; None if it has all."""
    why: str = ""
    """The reason why the slice before was replaced."""
    starting_since: float | None = None
    """The time since which Google creates the slice, in seconds since 1970; None if it does not."""
    draining_since: float | None = None
    """The time since which steps leave the slice for a bad host, in seconds since 1970; None if it has none."""

    def name(self, cluster: Cluster) -> str:
        return f"{cluster.name}-{self.type}-{self.number}-{self.incarnation}"


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A request that Google has refused, or not answered. It is sent again after a pause, which grows."""

    name: str
    """The name of the slice."""
    count: int
    """Number of refusals in a row."""
    not_before: float
    """The time, in seconds since 1970, before which it is not sent again."""
    why: str


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """All slots of a cluster, and the controller that fills them."""

    slots: tuple[Slot, ...] = ()
    first_number: int = 0
    """Slices of a smaller number belong to a file that was lost. No controller deletes them."""
    next_number: int = 0
    owner: str = ""
    """The controller that works on them; others stand by."""
    owned_until: float = 0.0
    """In seconds since 1970."""
    refused: tuple[Refused, ...] = ()

    def refusal_of(self, name: str) -> Refused | None:
        """The refusal of the last request for the slice."""
        return next((refusal for refusal in self.refused if refusal.name == name), None)

    def add(self, type: str, capacity: str, reservation: str, count: int) -> Wanted:
        """Add `count` slots."""
        more = tuple(
            Slot(number=self.next_number + index, type=type, capacity=capacity, reservation=reservation)
            for index in range(count)
        )
        return replace(self, slots=self.slots + more, next_number=self.next_number + count)

    def has_had(self, cluster: Cluster, name: str) -> bool:
        """Whether the slice is, or was, in a slot of this file. Slices of a file that was lost are never deleted."""
        place = place_of(cluster, name)
        return place is not None and self.first_number <= place.number < self.next_number

    def replace_slot(self, slot: Slot) -> Wanted:
        return replace(self, slots=tuple(slot if old.number == slot.number else old for old in self.slots))


def path_of(cluster: Cluster) -> str:
    return join(cluster.prefix, f".marin/clusters/{cluster.name}.json")


def load(path: str) -> tuple[Wanted, str | None]:
    """The wanted slices and the generation of their file; an empty target and None before it is first written.

    Raises WantedError and UnavailableError.
    """
    file = read(path)
    if file is None:
        return Wanted(), None
    return _parse(path, file.data), file.generation


def begin(path: str, cluster: Cluster, existing: Iterable[str]) -> None:
    """Create the file, unless it exists. `existing`: names of the slices of the cluster. They keep their numbers.

    So after the loss of a file no controller deletes its slices, or requests them a second time.
    Raises UnavailableError.
    """
    if read(path) is None:
        numbers = [place.number for name in existing if (place := place_of(cluster, name)) is not None]
        with contextlib.suppress(ConflictError):  # another process has created it
            first = max(numbers, default=-1) + 1
            store(path, Wanted(first_number=first, next_number=first), None)


def store(path: str, target: Wanted, expected: str | None) -> str:
    """Write the target over the `expected` generation of the file; return the new generation.

    Raises ConflictError and UnavailableError.
    """
    fields = asdict(target)
    if not target.refused:  # earlier software reads the file, as long as nothing new is to be stored
        del fields["refused"]
    for slot in fields["slots"]:
        for name in ("starting_since", "draining_since"):
            if slot[name] is None:
                del slot[name]
    body = {"format": FORMAT, **fields}
    return write(path, json.dumps(body, indent=1).encode(), expected=expected)


def change(path: str, edit: Callable[[Wanted], Wanted]) -> Wanted:
    """Change the target, also while other processes change it. Raises WantedError and UnavailableError."""
    while True:
        target, generation = load(path)
        changed = edit(target)
        try:
            store(path, changed, generation)
        except ConflictError:
            continue
        return changed


@dataclass(frozen=True, kw_only=True)
class Place:
    """The parts of a slice's name."""

    type: str
    number: int
    incarnation: int


def place_of(cluster: Cluster, name: str) -> Place | None:
    """The place of a slice, by its name; None for the name of something else."""
    match = re.fullmatch(rf"{re.escape(cluster.name)}-([a-z0-9]+-[0-9]+)-([0-9]+)-([0-9]+)", name)
    return Place(type=match[1], number=int(match[2]), incarnation=int(match[3])) if match else None


def _parse(path: str, data: bytes) -> Wanted:
    try:
        fields: dict[str, Any] = json.loads(data)
        version = fields.pop("format")
        slots = tuple(Slot(**slot) for slot in fields.pop("slots")) if version == FORMAT else ()
        refused = tuple(Refused(**refusal) for refusal in fields.pop("refused", ())) if version == FORMAT else ()
        target = Wanted(slots=slots, refused=refused, **fields) if version == FORMAT else None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WantedError(
            f"{path!r} is damaged ({type(error).__name__}: {error}). No slice is changed. Restore an earlier "
            "generation of the object, or delete it, and add the slices again: marin cluster add-worker."
        ) from None
    if target is None:
        raise WantedError(f"{path!r} has format {version!r}, and this software knows {FORMAT}. Use the newer software.")
    return target
