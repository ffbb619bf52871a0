"""Progress over bytes, told as sentences: how much is done, how fast, how long it will take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

EVERY_S = 5.0


class BytesProgress:
    """At most one line every five seconds, so that short work is silent. Threads may advance it."""

    def __init__(self, what: str, total_bytes: int, say: Callable[[str], None]) -> None:
        self._what, self._total, self._say = what, total_bytes, say
        self._done = 0
        self._started = self._told = time.monotonic()
        self._lock = threading.Lock()

    def advance(self, more_bytes: int) -> None:
        with self._lock:
            self._done += more_bytes
            now = time.monotonic()
            if now - self._told < EVERY_S:
                return
            self._told = now
            line = self._line(max(now - self._started, 1e-9))
        self._say(line)

    def _line(self, elapsed_s: float) -> str:
        rate = self._done / elapsed_s
        left_s = max(self._total - self._done, 0) / max(rate, 1)
        return (
            f"{self._what}: {readable_bytes(self._done)} of {readable_bytes(self._total)}, "
            f"{readable_bytes(rate)}/s, {left_s:.0f} s left"
        )


def readable_bytes(count: float) -> str:
    """ "1.2 GB"."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"
