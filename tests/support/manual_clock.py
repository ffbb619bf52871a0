"""The clock of the leases of a test's own process, advanced by hand."""

from __future__ import annotations

import threading

from running import wait_until

from marin_resources.storage.lease.heartbeat import Clock


class ManualClock(Clock):
    """Stands still until a test advances it."""

    def __init__(self) -> None:
        self._now_s = 1000.0
        self._others = set(threading.enumerate())
        self._waiting: set[int | None] = set()

    def advance(self, seconds: float, *, hung: int = 0) -> None:
        """Go on by `seconds` once all threads of leases, but for `hung` ones, wait for a time to come."""
        wait_until(lambda: len(self._waiting) == self._threads() - hung, "the leases' threads to wait")
        self._now_s += seconds

    def now_s(self) -> float:
        return self._now_s

    def wait(self, ended: threading.Event, timeout_s: float) -> bool:
        if threading.current_thread() in self._others:  # of a lease that an earlier test has left
            return ended.wait(timeout_s)
        ends_s, us = self._now_s + timeout_s, threading.get_ident()
        self._waiting.add(us)
        while self._now_s < ends_s and not ended.wait(0.005):
            pass
        self._waiting.discard(us)
        return ended.is_set()

    def _threads(self) -> int:
        return sum(thread.name.startswith("lease-") for thread in set(threading.enumerate()) - self._others)
