"""The slices that a cluster shall have: a control file in its prefix, <prefix>/.marin/clusters/<name>.json.

A *slot* is one wanted slice. Google's slice in it changes: a preempted one is followed by the next *incarnation*. The
name of a slice says both, <cluster>-<type>-<slot>-<incarnation>, so that a request that is sent twice, by whomever,
makes one slice, and an older slice is known as such by its name alone. Numbers of slots are never used again.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from marin_resources.clusters.cluster import Cluster
from marin_resources.settings import SettingError
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
    """Of the slice that is in it now, or comes next."""
    not_before: float = 0.0
    """The time, in seconds since 1970, before which the slice is not requested."""
    failures: int = 0
    """Slices in a row that Google could not make, or that did not join."""
    missing_since: float | None = None
    """Since when the head answers and knows not all hosts of the slice, in seconds since 1970; None if it does."""
    why: str = ""
    """Why the slice before was replaced."""
    starting_since: float | None = None
    """Since when Google creates the slice, in seconds since 1970; None if it does not."""
    draining_since: float | None = None
    """Since when steps leave the slice, which has a bad host, in seconds since 1970; None if it has none."""

    def name(self, cluster: Cluster) -> str:
        return f"{cluster.name}-{self.type}-{self.number}-{self.incarnation}"


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A request that Google has refused, or not answered. It is sent again after a pause, which grows."""

    name: str
    """Of the slice."""
    count: int
    """How often in a row."""
    not_before: float
    """The time, in seconds since 1970, before which it is not sent again."""
    why: str


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """All slots of a cluster, and who brings them about."""

    slots: tuple[Slot, ...] = ()
    first_number: int = 0
    """Slices of a smaller number are of a file that was lost, and nobody's to delete."""
    next_number: int = 0
    owner: str = ""
    """The controller that works on them; others stand by."""
    owned_until: float = 0.0
    """In seconds since 1970."""
    refused: tuple[Refused, ...] = ()

    def refusal_of(self, name: str) -> Refused | None:
        """The refusal of the last request for the slice."""
        return next((each for each in self.refused if each.name == name), None)

    def add(self, type: str, capacity: str, reservation: str, count: int) -> Wanted:
        """So many further slots."""
        more = tuple(
            Slot(number=self.next_number + index, type=type, capacity=capacity, reservation=reservation)
            for index in range(count)
        )
        return replace(self, slots=self.slots + more, next_number=self.next_number + count)

    def has_had(self, cluster: Cluster, name: str) -> bool:
        """Whether the slice is, or was, in a slot of this file: one of a file that was lost is nobody's to delete."""
        place = place_of(cluster, name)
        return place is not None and self.first_number <= place.number < self.next_number

    def replace_slot(self, slot: Slot) -> Wanted:
        return replace(self, slots=tuple(slot if each.number == slot.number else each for each in self.slots))


def path_of(cluster: Cluster) -> str:
    return join(cluster.prefix, f".marin/clusters/{cluster.name}.json")


def load(path: str) -> tuple[Wanted, str | None]:
    """The wanted slices and the generation of their file; none of either before it is first written.

    Raises WantedError and UnavailableError.
    """
    found = read(path)
    if found is None:
        return Wanted(), None
    return _parse(path, found.data), found.generation


def begin(path: str, cluster: Cluster, there: Iterable[str]) -> None:
    """Create the file, unless it exists. The numbers of the slices that are there, by their names, stay theirs.

    So a file that was lost makes nobody delete, or request a second time, what the lost one had.
    Raises UnavailableError.
    """
    if read(path) is None:
        numbers = [place.number for name in there if (place := place_of(cluster, name)) is not None]
        with contextlib.suppress(ConflictError):  # another process has created it
            first = max(numbers, default=-1) + 1
            store(path, Wanted(first_number=first, next_number=first), None)


def store(path: str, wanted: Wanted, expected: str | None) -> str:
    """Write them over that generation of the file; return the new one. Raises ConflictError and UnavailableError."""
    fields = asdict(wanted)
    if not wanted.refused:  # earlier software reads the file, as long as nothing new is to be stored
        del fields["refused"]
    for slot in fields["slots"]:
        for name in ("starting_since", "draining_since"):
            if slot[name] is None:
                del slot[name]
    body = {"format": FORMAT, **fields}
    return write(path, json.dumps(body, indent=1).encode(), expected=expected)


def change(path: str, edit: Callable[[Wanted], Wanted]) -> Wanted:
    """Change them, whoever else does. Raises WantedError and UnavailableError."""
    while True:
        wanted, generation = load(path)
        changed = edit(wanted)
        try:
            store(path, changed, generation)
        except ConflictError:
            continue
        return changed


@dataclass(frozen=True, kw_only=True)
class Place:
    """What the name of a slice says."""

    type: str
    number: int
    incarnation: int


def place_of(cluster: Cluster, name: str) -> Place | None:
    """Where a slice belongs, by its name; None for the name of something else."""
    found = re.fullmatch(rf"{re.escape(cluster.name)}-([a-z0-9]+-[0-9]+)-([0-9]+)-([0-9]+)", name)
    return Place(type=found[1], number=int(found[2]), incarnation=int(found[3])) if found else None


def _parse(path: str, data: bytes) -> Wanted:
    try:
        found: dict[str, Any] = json.loads(data)
        version = found.pop("format")
        slots = tuple(Slot(**each) for each in found.pop("slots")) if version == FORMAT else ()
        refused = tuple(Refused(**each) for each in found.pop("refused", ())) if version == FORMAT else ()
        wanted = Wanted(slots=slots, refused=refused, **found) if version == FORMAT else None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WantedError(
            f"{path!r} is damaged ({type(error).__name__}: {error}). No slice is changed. Restore an earlier "
            "generation of the object, or delete it, and add the slices again: marin cluster add-worker."
        ) from None
    if wanted is None:
        raise WantedError(f"{path!r} has format {version!r}, and this software knows {FORMAT}. Use the newer software.")
    return wanted
