"""Report progress over bytes: how many are done, how fast, and how long the rest takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

EVERY_S = 5.0


class BytesProgress:
    """Reports at most one line every 5 s, so short work is silent. Threads may share it."""

    def __init__(self, action: str, total_bytes: int, report: Callable[[str], None]) -> None:
        self._action, self._total, self._report = action, total_bytes, report
        self._done = 0
        self._started = self._reported = time.monotonic()
        self._lock = threading.Lock()

    def advance(self, more_bytes: int) -> None:
        with self._lock:
            self._done += more_bytes
            now = time.monotonic()
            if now - self._reported < EVERY_S:
                return
            self._reported = now
            line = self._line(max(now - self._started, 1e-9))
        self._report(line)

    def _line(self, elapsed_s: float) -> str:
        rate = self._done / elapsed_s
        left_s = max(self._total - self._done, 0) / max(rate, 1)
        return (
            f"{self._action}: {readable_bytes(self._done)} of {readable_bytes(self._total)}, "
            f"{readable_bytes(rate)}/s, {left_s:.0f} s left"
        )


def readable_bytes(count: float) -> str:
    """ "1.2 GB"."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"
