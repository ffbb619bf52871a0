"""A heartbeat: renews a lease in a thread of its own, and reports once if the lease is lost.

Lost means that the file is another's, or that it could not be renewed in time. The deadline is by the holder's clock:
0.8 of the lease's time to live after the *start* of the last successful renewal, so that the holder stops before any
observer may call the lease stale. A second thread watches the deadline, since a renewal can hang in the network.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from marin_resources.storage.lease.protocol import LeaseLostError, LeaseObserver

RENEWALS_IN_A_LIFE = 3
TRIES_IN_A_LIFE = 12
"""A failed renewal is retried after this part of the time to live."""
SELF_STOP = 0.8
"""Part of the time to live after which a holder that could not renew stops itself."""

log = logging.getLogger(__name__)


class Clock:
    """The time by which leases are renewed and expire. Tests put another in the place of `CLOCK`."""

    def now_s(self) -> float:
        """Monotonic, and it counts suspended time where the system can: observers count it too."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

    def wait(self, ended: threading.Event, timeout_s: float) -> bool:
        """Wait for `ended`, for `timeout_s` at most. Returns whether it is set."""
        return ended.wait(timeout_s)


CLOCK = Clock()


def clock_s() -> float:
    """The time now, in seconds, by `CLOCK`."""
    return CLOCK.now_s()


class Heartbeat:
    """Calls `renew` three times per time to live. `renew` raises LeaseLostError, or another error to be retried."""

    def __init__(self, renew: Callable[[], None], *, ttl_s: float, began_s: float, expires: bool = True) -> None:
        """`began_s` is `clock_s()` before the acquisition. `expires` is False for a kernel lock: it has no deadline."""
        self._renew, self._ttl_s, self._expires = renew, ttl_s, expires
        self._deadline_s = began_s + SELF_STOP * ttl_s
        self._ended = threading.Event()
        self._once = threading.Lock()
        self._observer: LeaseObserver | None = None
        self.reason: str | None = None
        for work in (self._beat, self._watch) if expires else (self._beat,):
            threading.Thread(target=work, name=f"lease-{work.__name__.strip('_')}", daemon=True).start()

    def observe(self, observer: LeaseObserver) -> None:
        with self._once:
            self._observer = observer
        if self.reason is not None:
            observer.lost(self.reason)
        elif self._expires:
            observer.renewed(self._deadline_s)

    def check(self) -> None:
        """Raise LeaseLostError if the lease is lost, or was not renewed in time."""
        if self.reason is None and self._expires and clock_s() > self._deadline_s:
            self._lose(f"it could not be renewed for {SELF_STOP * self._ttl_s:g} s")
        if self.reason is not None:
            raise LeaseLostError(f"The lease was lost: {self.reason}. Nothing is published; run again.")

    def stop(self) -> None:
        self._ended.set()
        if self._observer is not None:
            self._observer.released()

    def _beat(self) -> None:
        pause_s = self._ttl_s / RENEWALS_IN_A_LIFE
        while not CLOCK.wait(self._ended, pause_s):
            began_s = clock_s()
            try:
                self._renew()
            except LeaseLostError as error:
                self._lose(str(error))
                return
            except Exception as error:  # any error of the store's client is retried until the deadline
                log.warning("the lease could not be renewed (%s: %s); retrying", type(error).__name__, error)
                pause_s = self._ttl_s / TRIES_IN_A_LIFE
                continue
            self._deadline_s = began_s + SELF_STOP * self._ttl_s
            if self._observer is not None and self._expires:
                self._observer.renewed(self._deadline_s)
            pause_s = self._ttl_s / RENEWALS_IN_A_LIFE

    def _watch(self) -> None:
        while not CLOCK.wait(self._ended, max(self._deadline_s - clock_s(), 0.01)):
            if clock_s() > self._deadline_s:
                self._lose(f"it could not be renewed for {SELF_STOP * self._ttl_s:g} s")
                return

    def _lose(self, reason: str) -> None:
        with self._once:
            if self.reason is not None or self._ended.is_set():
                return
            self.reason = reason
            observer = self._observer
        self._ended.set()
        if observer is not None:
            observer.lost(reason)
