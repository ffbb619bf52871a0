"""What is stored: an output by name and version, its status, its record, and what a look at it found. Pure types."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Status(enum.StrEnum):
    """The one token in `.executor_status`. Marin's words."""

    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    DEP_FAILED = "DEP_FAILED"


def identity_of(version: Mapping[str, Any]) -> str:
    """The digest of a whole version, as computed or as read back from a record of ours or of Marin's."""
    return hashlib.sha256(json.dumps(version, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Output:
    """What a step makes, independent of where it lies."""

    name: str
    version: str
    """Six hex digits, in the path."""
    identity: str
    """sha256 of the whole version: two outputs are one if and only if these agree."""
    partition: str | None = None
    override: str | None = None
    """A path to use in place of the hashed one, relative to the prefix or absolute."""

    def relative(self) -> str:
        """Where the output lies below a prefix."""
        if self.override is not None:
            return self.override
        path = f"{self.name}-{self.version}"
        return path if self.partition is None else f"{path}/{self.partition}"


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who holds the lease of an output."""

    owner: str
    """uuid of the acquisition; Marin's `worker_id` if Marin holds it."""
    host: str
    pid: int
    run_id: str | None
    since: str
    """ISO 8601, UTC, by the holder's clock."""
    heartbeat: str = "?"
    """When it was last renewed, likewise."""
    ttl_s: float | None = None
    """Seconds without a renewal after which the holder counts as gone; None where the kernel keeps the lease."""
    attempt: int = 0
    generation: str = ""
    """Of the lease's file, when it was looked at."""

    def describe(self) -> str:
        if self.host == "?":
            return f"{self.owner!r}, last heartbeat {self.heartbeat}"
        run = f", Dagster run {self.run_id}" if self.run_id else ""
        return f"process {self.pid} on {self.host}{run}, since {self.since}, last heartbeat {self.heartbeat}"


class Match(enum.Enum):
    """How what lies at a path relates to what was asked for."""

    SAME = "same"
    UNVERIFIED = "unverified"
    """Done, by a Marin that recorded no version."""
    OTHER = "other"
    """Made from another recipe whose six digits are the same, or put there by an override."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What a look at an output found."""

    path: str
    status: Status | None = None
    record: Mapping[str, Any] | None = None
    holder: Holder | None = None
    """Who works on it now."""
    match: Match = Match.SAME

    @property
    def done(self) -> bool:
        """Complete, and what was asked for."""
        return self.status is Status.SUCCESS and self.match is not Match.OTHER

    @property
    def result(self) -> Mapping[str, Any]:
        """What the step's function reported, as far as it is recorded."""
        return (self.record or {}).get("result") or {}
