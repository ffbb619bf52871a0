"""The account of what a step has moved between regions, and of what is on its way. Pure: no store, no clock.

A transfer is asked for before it begins, reserves its bytes, and is settled with what was really moved. One that does
not fit into what is left of the budget is refused. One that would fit if those on their way came to nothing has to
wait: they end, or are found dead, and then it is known. The same holds while another moves the very same files.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

FORMAT_VERSION = 1
MOST_ENTRIES = 200
"""Of what was moved. Beyond them, entries of one folder become one."""
WRITES_REMEMBERED = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """The process that has a reservation."""

    id: str
    machine: str
    """Of this boot, and of this container: two processes of equal `machine` see each other."""
    pid: int
    started: float
    """When the process began, since pids come again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    id: str
    path: str
    bytes: int
    whole: bool
    """Whether files are moved as a whole, and are here then; a part that is read leaves nothing behind."""
    owner: Owner
    attempt: int
    """Of the step. Those of an earlier attempt are dead."""
    beat: int = 0
    """Grows while the owner lives."""

    def meets(self, path: str) -> bool:
        """Whether both move some of the same files."""
        return path == self.path or path.startswith(self.path + "/") or self.path.startswith(path + "/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """Bytes that came from one region to another."""

    path: str
    origin: str
    to: str
    bytes: int
    dollars: float
    files: int = 1


class Answer(enum.Enum):
    GRANTED = "granted"
    WAIT = "wait"
    REFUSED = "refused"


@dataclass(kw_only=True)
class Ledger:
    moved: list[Moved] = field(default_factory=list)
    reserved: dict[str, Reservation] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    """Ids of the last writes, so that a writer can tell whether one that it heard nothing of took effect."""

    @property
    def moved_bytes(self) -> int:
        return sum(entry.bytes for entry in self.moved)

    @property
    def reserved_bytes(self) -> int:
        return sum(reservation.bytes for reservation in self.reserved.values())

    def ask(self, wanted: Reservation, budget_bytes: int, dead: Collection[str] = ()) -> Answer:
        """Reserve what is wanted, if it fits. `dead` are ids of reservations whose owners are known to be gone."""
        for one in list(self.reserved.values()):
            if one.id in dead or one.attempt < wanted.attempt:
                del self.reserved[one.id]
        if wanted.whole and any(one.whole and one.meets(wanted.path) for one in self.reserved.values()):
            return Answer.WAIT  # whoever moves the same files may well spare this one the transfer
        if self.moved_bytes + wanted.bytes > budget_bytes:
            return Answer.REFUSED
        if self.moved_bytes + self.reserved_bytes + wanted.bytes > budget_bytes:
            return Answer.WAIT
        self.reserved[wanted.id] = wanted
        return Answer.GRANTED

    def settle(self, reservation_id: str, moved: Iterable[Moved], *, done: bool) -> None:
        """Enter what was moved; when it is done, what was reserved beyond comes back. Moved bytes always count."""
        entries = list(moved)
        self.moved = _merged([*self.moved, *entries])
        held = self.reserved.pop(reservation_id, None)
        if held is not None and not done:
            left = max(0, held.bytes - sum(entry.bytes for entry in entries))
            self.reserved[held.id] = dataclasses.replace(held, bytes=left, beat=held.beat + 1)

    def beat(self, reservation_ids: Iterable[str]) -> set[str]:
        """Say that the owner of these lives; returns those that are gone."""
        asked = set(reservation_ids)
        for one in [self.reserved[i] for i in asked & self.reserved.keys()]:
            self.reserved[one.id] = dataclasses.replace(one, beat=one.beat + 1)
        return asked - self.reserved.keys()

    def to_json(self) -> str:
        fields = {
            "moved": [_plain(entry) for entry in self.moved],
            "reserved": [_plain(one) for one in self.reserved.values()],
            "writes": self.writes[-WRITES_REMEMBERED:],
        }
        return json.dumps({"format_version": FORMAT_VERSION, **fields}, indent=2)

    @staticmethod
    def from_json(text: str | bytes) -> Ledger:
        """Raises ValueError for a ledger of a newer format."""
        fields: dict[str, Any] = json.loads(text)
        if fields["format_version"] > FORMAT_VERSION:
            raise ValueError(
                f"The account of transfers has format version {fields['format_version']!r}, and {FORMAT_VERSION} is "
                "the newest known here. Update this checkout."
            )
        reserved = [Reservation(**{**one, "owner": Owner(**one["owner"])}) for one in fields["reserved"]]
        return Ledger(
            moved=[Moved(**entry) for entry in fields["moved"]],
            reserved={one.id: one for one in reserved},
            writes=fields["writes"],
        )


def _plain(entry: Moved | Reservation) -> dict[str, Any]:
    return dataclasses.asdict(entry)


def _merged(entries: list[Moved]) -> list[Moved]:
    """One entry for a path and a pair of regions; folders in place of files, while there are too many."""
    summed = _summed(entries)
    while len(summed) > MOST_ENTRIES:
        deepest = max(entry.path.count("/") for entry in summed)
        summed = _summed([_lifted(e) if e.path.count("/") == deepest else e for e in summed])
        if deepest <= len(("mirror:", "")):
            break
    return summed


def _summed(entries: Iterable[Moved]) -> list[Moved]:
    sums: dict[tuple[str, str, str], Moved] = {}
    for entry in entries:
        key = (entry.path, entry.origin, entry.to)
        sums[key] = _added(sums[key], entry) if key in sums else entry
    return list(sums.values())


def _added(one: Moved, other: Moved) -> Moved:
    return dataclasses.replace(
        one, bytes=one.bytes + other.bytes, dollars=one.dollars + other.dollars, files=one.files + other.files
    )


def _lifted(entry: Moved) -> Moved:
    return dataclasses.replace(entry, path=entry.path.rpartition("/")[0])
