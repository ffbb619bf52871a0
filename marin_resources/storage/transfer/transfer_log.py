"""The ledger: bytes that a step has moved between regions, and reservations of open transfers. No store, no clock.

A transfer reserves its bytes before it begins, and is settled with the bytes that were moved. It is refused if it
exceeds the rest of the budget. It waits if it would fit only without the open reservations: they end, or are found
dead, and then the decision is clear. It also waits while another transfer moves the same files.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

FORMAT_VERSION = 1
SHAPE = {
    "moved": Required(
        [Required({**dict.fromkeys(("path", "origin", "to"), Required(str)), "bytes": int, "dollars": float})]
    ),
    "reserved": Required([Required({"id": str, "path": str, "bytes": int, "owner": Required(dict), "attempt": int})]),
    "writes": Required([str]),
}


class LedgerError(ControlFileError):
    """A ledger that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(kind="ledger of transfers", newest=FORMAT_VERSION, error=LedgerError, shape=SHAPE)
MAX_ENTRIES = 200
"""Maximum number of entries of moved bytes. Beyond it, entries of one folder are merged into one."""
WRITES_REMEMBERED = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """The process that holds a reservation."""

    id: str
    machine: str
    """Boot and container: two processes with equal `machine` can observe each other."""
    pid: int
    started: float
    """Start time of the process in seconds since 1970, since pids are reused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    id: str
    path: str
    bytes: int
    whole: bool
    """Whether whole files are copied, which others can read afterwards; a partial read leaves no copy."""
    owner: Owner
    attempt: int
    """Attempt of the step. Reservations of an earlier attempt are dead."""
    beat: int = 0
    """Heartbeat count: grows while the owner is alive."""

    def overlaps(self, path: str) -> bool:
        """Whether both move some of the same files."""
        return path == self.path or path.startswith(self.path + "/") or self.path.startswith(path + "/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """Bytes that were moved from one region to another."""

    path: str
    origin: str
    to: str
    bytes: int
    dollars: float
    files: int = 1


class Decision(enum.Enum):
    """The decision on a request for a reservation."""

    GRANTED = "granted"
    WAIT = "wait"
    REFUSED = "refused"


@dataclass(kw_only=True)
class Ledger:
    moved: list[Moved] = field(default_factory=list)
    reserved: dict[str, Reservation] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    """Ids of the last writes: a writer whose response was lost finds out here whether its write succeeded."""

    @property
    def moved_bytes(self) -> int:
        return sum(entry.bytes for entry in self.moved)

    @property
    def reserved_bytes(self) -> int:
        return sum(reservation.bytes for reservation in self.reserved.values())

    def reserve(self, reservation: Reservation, budget_bytes: int, dead: Collection[str] = ()) -> Decision:
        """Make the reservation, if it fits. `dead` are ids of reservations whose owners are gone."""
        for other in list(self.reserved.values()):
            if other.id in dead or other.attempt < reservation.attempt:
                del self.reserved[other.id]
        if reservation.whole and any(
            other.whole and other.overlaps(reservation.path) for other in self.reserved.values()
        ):
            return Decision.WAIT  # the open transfer of the same files may make this one unnecessary
        if self.moved_bytes + reservation.bytes > budget_bytes:
            return Decision.REFUSED
        if self.moved_bytes + self.reserved_bytes + reservation.bytes > budget_bytes:
            return Decision.WAIT
        self.reserved[reservation.id] = reservation
        return Decision.GRANTED

    def settle(self, reservation_id: str, moved: Iterable[Moved], *, done: bool) -> None:
        """Enter moved bytes. `done` ends the reservation and returns the rest of it. Moved bytes always count."""
        entries = list(moved)
        self.moved = _merged([*self.moved, *entries])
        held = self.reserved.pop(reservation_id, None)
        if held is not None and not done:
            remaining = max(0, held.bytes - sum(entry.bytes for entry in entries))
            self.reserved[held.id] = dataclasses.replace(held, bytes=remaining, beat=held.beat + 1)

    def beat(self, reservation_ids: Iterable[str]) -> set[str]:
        """Enter a heartbeat for these reservations; return the ids that no longer exist."""
        ids = set(reservation_ids)
        for reservation in [self.reserved[i] for i in ids & self.reserved.keys()]:
            self.reserved[reservation.id] = dataclasses.replace(reservation, beat=reservation.beat + 1)
        return ids - self.reserved.keys()

    def to_json(self) -> str:
        fields = {
            "moved": [dataclasses.asdict(entry) for entry in self.moved],
            "reserved": [dataclasses.asdict(reservation) for reservation in self.reserved.values()],
            "writes": self.writes[-WRITES_REMEMBERED:],
        }
        return json.dumps({"format_version": FORMAT_VERSION, **fields}, indent=2)

    @staticmethod
    def from_json(text: str | bytes, path: str) -> Ledger:
        """Read the ledger stored at `path`. Raises LedgerError if it is damaged or of a newer format."""
        fields = FORMAT.parse(text, path)
        try:
            reserved = [Reservation(**{**entry, "owner": Owner(**entry["owner"])}) for entry in fields["reserved"]]
            return Ledger(
                moved=[Moved(**entry) for entry in fields["moved"]],
                reserved={reservation.id: reservation for reservation in reserved},
                writes=fields["writes"],
            )
        except TypeError as error:
            raise FORMAT.invalid(path, error) from error


def _merged(entries: list[Moved]) -> list[Moved]:
    """Merge entries of one path and pair of regions, and while they are too many, files into their folders."""
    summed = _summed(entries)
    while len(summed) > MAX_ENTRIES:
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


def _added(entry: Moved, other: Moved) -> Moved:
    return dataclasses.replace(
        entry, bytes=entry.bytes + other.bytes, dollars=entry.dollars + other.dollars, files=entry.files + other.files
    )


def _lifted(entry: Moved) -> Moved:
    return dataclasses.replace(entry, path=entry.path.rpartition("/")[0])
