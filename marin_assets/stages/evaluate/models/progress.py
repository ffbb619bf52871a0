"""Progress of an evaluation in its log."""

from __future__ import annotations

import logging
import time

LOG_EVERY_S = 5.0

log = logging.getLogger(__name__)


class LoggedProgress:
    """Log the rate and the time left, every 5 s and at the end."""

    def __init__(self, requests: str, of: int) -> None:
        self._requests, self._of, self._done = requests, of, 0
        self._started = self._logged_at = time.monotonic()

    def advance(self, by: int) -> None:
        """`by` more are done."""
        self._done += by
        now = time.monotonic()
        if now - self._logged_at > LOG_EVERY_S or self._done == self._of:
            self._logged_at, rate = now, self._done / max(now - self._started, 1e-9)
            left_s = (self._of - self._done) / rate
            log.info("%s: %d of %d, %.1f a second, %.0f s left", self._requests, self._done, self._of, rate, left_s)
