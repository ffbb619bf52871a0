"""A heartbeat: renews a lease in a thread of its own, and says once if the lease is lost.

Lost means that the file is another's, or that it could not be renewed in time. The time is the holder's own: 0.8 of
the lease's time to live after the *start* of the last renewal that went through, so that the holder stops before
anybody may think that it is gone. A second thread watches that time, since a renewal can hang in the network.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from marin_resources.storage.lease.protocol import LeaseLostError

RENEWALS_IN_A_LIFE = 3
TRIES_IN_A_LIFE = 12
"""How often a renewal that did not get through is tried again."""
SELF_STOP = 0.8

log = logging.getLogger(__name__)


def clock_s() -> float:
    """Seconds that go on while the machine is suspended, where the system can tell: others' time goes on then too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Heartbeat:
    """Calls `renew` three times in each life of a lease. `renew` raises LeaseLostError, or OSError to try again."""

    def __init__(self, renew: Callable[[], None], *, ttl_s: float, began_s: float, expires: bool = True) -> None:
        """`began_s`: `clock_s()` before the acquisition. A lease that the kernel keeps does not expire by time."""
        self._renew, self._ttl_s, self._expires = renew, ttl_s, expires
        self._deadline_s = began_s + SELF_STOP * ttl_s
        self._ended = threading.Event()
        self._once = threading.Lock()
        self._on_lost: Callable[[str], None] | None = None
        self.reason: str | None = None
        for work in (self._beat, self._watch) if expires else (self._beat,):
            threading.Thread(target=work, name=f"lease-{work.__name__.strip('_')}", daemon=True).start()

    def on_lost(self, act: Callable[[str], None]) -> None:
        """Have `act(reason)` called when the lease is lost; at once if it is."""
        with self._once:
            self._on_lost = act
        if self.reason is not None:
            act(self.reason)

    def check(self) -> None:
        """Raise LeaseLostError if the lease is lost, or has not been renewed in time."""
        if self.reason is None and self._expires and clock_s() > self._deadline_s:
            self._lose(f"it could not be renewed for {SELF_STOP * self._ttl_s:g} s")
        if self.reason is not None:
            raise LeaseLostError(f"The lease was lost: {self.reason}. Nothing is published; run again.")

    def stop(self) -> None:
        self._ended.set()

    def _beat(self) -> None:
        pause_s = self._ttl_s / RENEWALS_IN_A_LIFE
        while not self._ended.wait(pause_s):
            began_s = clock_s()
            try:
                self._renew()
            except LeaseLostError as error:
                self._lose(str(error))
                return
            except Exception as error:  # whatever the store's client raises: tried again until the time is over
                log.warning("the lease could not be renewed (%s: %s); trying again", type(error).__name__, error)
                pause_s = self._ttl_s / TRIES_IN_A_LIFE
                continue
            self._deadline_s = began_s + SELF_STOP * self._ttl_s
            pause_s = self._ttl_s / RENEWALS_IN_A_LIFE

    def _watch(self) -> None:
        while not self._ended.wait(max(self._deadline_s - clock_s(), 0.01)):
            if clock_s() > self._deadline_s:
                self._lose(f"it could not be renewed for {SELF_STOP * self._ttl_s:g} s")
                return

    def _lose(self, reason: str) -> None:
        with self._once:
            if self.reason is not None or self._ended.is_set():
                return
            self.reason = reason
            act = self._on_lost
        self._ended.set()
        if act is not None:
            act(reason)
