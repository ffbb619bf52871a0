"""An output by name and version, its status, the holder of its lease, and its observed state. Pure types."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marin_resources.types.partition_key import segment_of
from marin_resources.types.record import Adoption, Record


class Status(enum.StrEnum):
    """The token in `.executor_status`, as Marin spells it."""

    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    DEP_FAILED = "DEP_FAILED"


def identity_of(version: Mapping[str, Any]) -> str:
    """SHA-256 of a whole version, as computed or as read from a record of ours or of Marin's."""
    return hashlib.sha256(json.dumps(version, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Output:
    """The output of a step, independent of its location."""

    name: str
    version: str
    """Six hex digits, in the path."""
    identity: str
    """SHA-256 of the whole version: two outputs are the same if and only if their identities are equal."""
    partition: str | None = None
    """The key of a partition, which is an output of its own."""
    override: str | None = None
    """A path in place of the hashed one, relative to the prefix or absolute."""

    def relative(self) -> str:
        """The output's path below a prefix."""
        path = f"{self.name}-{self.version}" if self.override is None else self.override
        return path if self.partition is None else f"{path.rstrip('/')}/{segment_of(self.partition)}"

    @property
    def label(self) -> str:
        """The name for people: the step's name, with the key of a partition: "tokenized/web[2026-01]"."""
        return self.name if self.partition is None else f"{self.name}[{self.partition}]"

    def at(self, partition: str) -> Output:
        """The output of one partition of this version: its identity covers the key."""
        identity = identity_of({"version": self.identity, "partition": partition})
        return dataclasses.replace(self, partition=partition, identity=identity)


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The process that holds the lease of an output."""

    owner: str
    """UUID of the acquisition; Marin's `worker_id` if Marin holds the lease."""
    host: str
    pid: int
    run_id: str | None
    since: str
    """ISO 8601, UTC, by the holder's clock."""
    heartbeat: str = "?"
    """Time of the last renewal, likewise."""
    ttl_s: float | None = None
    """Seconds without a renewal after which the lease is stale; None if the kernel holds the lock."""
    attempt: int = 0
    generation: str = ""
    """Generation of the lease's file when it was read."""

    def describe(self) -> str:
        """One phrase: process, host, Dagster run, start and last heartbeat."""
        if self.host == "?":
            return f"{self.owner!r}, last heartbeat {self.heartbeat}"
        run = f", Dagster run {self.run_id}" if self.run_id else ""
        return f"process {self.pid} on {self.host}{run}, since {self.since}, last heartbeat {self.heartbeat}"


class Match(enum.Enum):
    """The relation of a stored output to the requested one."""

    SAME = "same"
    UNVERIFIED = "unverified"
    """Complete, by a Marin that recorded no version."""
    OTHER = "other"
    """Another version: its six digits collide, or an override names the same path."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The state of an output when it was read."""

    path: str
    """The folder of its control files, and of its data unless the record has another path."""
    status: Status | None = None
    record: Record = field(default_factory=Record)
    """Without a field if none exists."""
    holder: Holder | None = None
    """The holder of its lease, if it is held."""
    match: Match = Match.SAME
    damage: str = ""
    """One sentence about a control file that cannot be used; then the other fields are not known."""
    listed: bool = False
    """Whether the state is from listings: a marker that it is complete, or no folder. Its files were not read, and its
    record has no result."""
    collected: bool = False
    """Whether `marin gc` has withdrawn it: it has no status, and a run brings it back without computing."""

    read_at_s: float = field(default=-math.inf, compare=False, repr=False)
    """When the reading of its files began, by this process's monotonic clock; long ago if they were not read."""

    @property
    def done(self) -> bool:
        """Whether it is complete and of the requested version."""
        return self.status is Status.SUCCESS and self.match is not Match.OTHER

    @property
    def idle(self) -> bool:
        """Whether it is known to be incomplete, and nobody computes it."""
        return self.status is not Status.SUCCESS and self.holder is None and not self.damage

    @property
    def adopted(self) -> Adoption | None:
        """The adoption of a complete output: the path of its data, and the reason."""
        return self.record.adopted if self.done else None

    @property
    def data_path(self) -> str:
        """The path of the data of a complete output: below the prefix of the cluster that computed it, or where they
        were adopted."""
        return self.record.data_path or self.path

    @property
    def result(self) -> Mapping[str, Any]:
        """The recorded result of the step's function; empty if none is recorded."""
        return self.record.result


def describe_adopted(record: Record) -> str:
    """The adoption of an output as a phrase: "adopted from 'raw/old': renamed". For an output that was computed from
    adopted ones: "made from 'raw/x', adopted from …". "" for any other record."""
    if adopted := record.adopted:
        return f"adopted from {adopted.path!r}: {adopted.why}"
    made_from = record.adopted_inputs
    return "; ".join(f"made from {name!r}, adopted from {source.path!r}" for name, source in made_from.items())


def below(path: str, name: str | None) -> str:
    """`name` below `path`; an absolute name or a URL stays as it is."""
    if not name:
        return path
    if name.startswith("/") or "://" in name:
        return name
    return f"{path.rstrip('/')}/{name}"
