"""More slices for a step that runs on fewer than it may take: look for them, and hold them until its next checkpoint.

`tpu("v4-16", slices=(1, 2, 4))` begins with the most that are free at that moment, and at least one.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.slices.bundles import group_of
from marin_resources.ray_tpu.slices.reservation import FREE_S, Host, is_there, release, request

LOOK_EVERY_S = 30.0
HOLD_S = 600.0
"""Limit for the wait for a checkpoint. A function that makes none in this time stays on the slices that it has."""


class ScaleUp:
    """Looks for more slices while one try runs."""

    def __init__(self, resources: Resources, hosts: Sequence[Host], avoid: Collection[str]) -> None:
        self._resources, self._avoid = resources, avoid
        self._have = slice_count(hosts)
        self._groups: list[Any] = []
        self._wanted = sorted((count for count in resources.more_slices if count > self._have), reverse=True)
        self._next = list(self._wanted)
        self._asked_s = self._looked_s = time.monotonic()
        self._found_s: float | None = None

    def found(self) -> int | None:
        """The number of slices that a new try could have; None if it is what this one has. Never waits."""
        now_s = time.monotonic()
        if self._found_s is not None:
            if now_s - self._found_s < HOLD_S:
                return self._have + len(self._groups)
            self._give_up()
        elif self._groups:
            if all(map(is_there, self._groups)):
                self._found_s = now_s
                return self._have + len(self._groups)
            if now_s - self._asked_s >= FREE_S:
                self.release()
        elif self._next:
            self._asked_s = now_s
            self._groups = request(group_of(self._resources, self._avoid), self._next.pop(0) - self._have)
        elif now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s, self._next = now_s, list(self._wanted)
        return None

    def release(self) -> None:
        """Return what is held to Ray."""
        release(self._groups)

    def _give_up(self) -> None:
        self.release()
        self._found_s, self._wanted, self._next = None, [], []


def slice_count(hosts: Sequence[Host]) -> int:
    return 1 + max(host.slice_index for host in hosts)
