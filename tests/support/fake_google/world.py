"""What exists in this Google Cloud, and how it changes by itself: machines boot, slices come, operations end.

Times are those of the world's clock, which a test may advance by hand. A change that is due happens before the next
request is answered.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fake_google.refusals import RefusalError

Json = dict[str, Any]


@dataclass
class Delays:
    """Seconds of the world's clock until something has happened."""

    boot_s: float = 0.0
    """A machine or a slice, from its creation until it is up."""
    provisioning_s: float = 0.0
    """A queued resource, from its acceptance until its slices are created."""
    deletion_s: float = 0.0
    listing_s: float = 0.0
    """A queued resource, until lists have it: what one request creates, the next one need not show."""


@dataclass
class World:
    project: str = "marin-example"
    now: Callable[[], float] = time.time
    delays: Delays = field(default_factory=Delays)
    capacity: dict[tuple[str, str], int] = field(default_factory=dict)
    """(zone, type of slice) -> slices that there are; what is not named is there without limit."""
    instances: dict[str, Json] = field(default_factory=dict)
    """Path -> machine."""
    nodes: dict[str, Json] = field(default_factory=dict)
    """Path -> slice of a TPU pod."""
    queued: dict[str, Json] = field(default_factory=dict)
    """Path -> queued resource."""
    operations: dict[str, Json] = field(default_factory=dict)
    accounts: dict[str, Json] = field(default_factory=dict)
    """Email -> service account."""
    policy: Json = field(default_factory=lambda: {"version": 1, "etag": "e0", "bindings": []})
    metadata: Json = field(default_factory=lambda: {"fingerprint": "f0", "items": []})
    """Of the project: its ssh keys, above all."""
    subnetworks: dict[str, str] = field(default_factory=dict)
    """Path of a subnetwork -> its network."""
    secrets: dict[str, str] = field(default_factory=dict)
    """Name of a secret -> the value of its latest version."""
    things: dict[str, Json] = field(default_factory=dict)
    """Path -> what else there is: networks, firewall rules, buckets, registries, secrets."""
    policies: dict[str, Json] = field(default_factory=dict)
    """Path -> who may what on it, where that is not the project's."""
    enabled: set[str] | None = None
    """The services of the project; None: all."""
    calls: list[str] = field(default_factory=list)
    """The id of each method that was called."""
    created: list[str] = field(default_factory=list)
    """The path of everything that was ever created, in order."""
    faults: list[tuple[str, Callable[[], None]]] = field(default_factory=list)
    """(the id of a method, what is done when it is called next); each is used once."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count(1)
        self._happening: float | None = None
        """The time of the change that happens now, which may be long over for the clock."""

    def number(self) -> int:
        return next(self._numbers)

    def later(self, delay_s: float, change: Callable[[], None]) -> None:
        """Do this when so much time is over; at once without a delay."""
        if delay_s <= 0:
            change()
        else:
            begins = self._happening if self._happening is not None else self.now()
            heapq.heappush(self._due, (begins + delay_s, self.number(), change))

    def settle(self) -> None:
        """Let happen what is due."""
        with self.lock:
            while self._due and self._due[0][0] <= self.now():
                self._happening, _, change = heapq.heappop(self._due)
                change()
                self._happening = None

    def strike(self, method: str) -> None:
        """The fault that a test has set for the next call of a method, if any."""
        for index, (name, fault) in enumerate(self.faults):
            if name == method:
                del self.faults[index]
                fault()
                return

    def free(self, zone: str, kind: str) -> int | None:
        """Slices of a type that are left in a zone; None without limit."""
        if (zone, kind) not in self.capacity:
            return None
        where = f"/locations/{zone}/"
        taken = sum(where in path and node["acceleratorType"] == kind for path, node in self.nodes.items())
        return self.capacity[zone, kind] - taken

    def operation(self, name: str, **fields: Any) -> Json:
        self.operations[name] = {"name": name, **fields}
        return self.operations[name]

    def is_enabled(self, service: str) -> bool:
        """Whether the project may use a service, such as "compute.googleapis.com"."""
        return self.enabled is None or service == "serviceusage.googleapis.com" or service in self.enabled

    def get(self, things: dict[str, Json], path: str) -> Json:
        if path not in things:
            raise RefusalError(404, f"The resource '{path}' was not found")
        return things[path]
