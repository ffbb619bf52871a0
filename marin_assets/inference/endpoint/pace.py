"""When the next request may be sent: by a limit of requests a minute, and after the waits that a server states."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_WAIT_S = 60.0
"""Between two tries of a request for which the server states no time."""


class Pace:
    """Slots for requests of all threads."""

    def __init__(self, requests_per_minute: int | None) -> None:
        self._interval_s = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._next_s = 0.0
        self._changing = threading.Lock()

    def take(self) -> float:
        """Take the next slot. Returns the seconds until it."""
        with self._changing:
            at = max(self._next_s, time.monotonic())
            if self._interval_s:
                self._next_s = at + self._interval_s
            return at - time.monotonic()

    def hold(self, wait_s: float) -> None:
        """No slot is before that."""
        with self._changing:
            self._next_s = max(self._next_s, time.monotonic() + wait_s)


def wait_after(tried: int) -> float:
    """Seconds before try `tried` + 1: they double from 1 s on, and differ, so that clients do not come together."""
    return min(2.0 ** (tried - 1), LONGEST_WAIT_S) * random.uniform(0.5, 1.0)


def stated_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds of `Retry-After`, as a number or a date; None if it is not stated."""
    text = headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
