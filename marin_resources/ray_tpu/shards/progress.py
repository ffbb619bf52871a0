"""Log the progress over shards: shards and bytes done, documents per second, time left."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

EVERY_S = 5.0

log = logging.getLogger(__name__)


class Progress:
    """Logs at most one line every five seconds, and one at the end. Time left is estimated by bytes if known."""

    def __init__(self, name: str, sizes: Sequence[int], finished: Sequence[int]) -> None:
        self._name, self._sizes = name, [size or 1 for size in sizes]
        self._bytes_known = any(sizes)
        self._done, self._documents = len(finished), 0.0
        self._total_bytes, self._done_bytes = sum(self._sizes), sum(self._sizes[i] for i in finished)
        self._first_bytes, self._first = self._done_bytes, self._done
        self._started_s = self._logged_at_s = time.monotonic()
        if finished:
            log.info("%s: %d of %d shards were finished before", name, len(finished), len(sizes))

    def advance(self, index: int, counts: Mapping[str, int | float]) -> None:
        """Add a finished shard with its counts."""
        self._done += 1
        self._done_bytes += self._sizes[index]
        self._documents += counts.get("documents") or counts.get("pages") or 0
        now_s = time.monotonic()
        if now_s - self._logged_at_s >= EVERY_S or self._done == len(self._sizes):
            self._logged_at_s = now_s
            log.info("%s", self._line(max(now_s - self._started_s, 1e-9)))

    def _line(self, elapsed_s: float) -> str:
        left_s = elapsed_s * (self._total_bytes - self._done_bytes) / max(self._done_bytes - self._first_bytes, 1)
        parts = [f"{self._name}: {self._done} of {len(self._sizes)} shards"]
        if self._bytes_known:
            parts.append(_of(self._done_bytes, self._total_bytes))
        if self._documents:
            parts.append(f"{self._documents / elapsed_s:,.0f} documents/s")
        else:
            parts.append(f"{(self._done - self._first) / elapsed_s:.2f} shards/s")
        return ", ".join([*parts, f"{left_s:.0f} s left"])


def _of(done: int, total: int) -> str:
    """Return for example "1.2 of 3.4 GB", in the unit of the total."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if total >= size:
            return f"{done / size:,.1f} of {total / size:,.1f} {unit}"
    return f"{done / 1e3:,.1f} of {total / 1e3:,.1f} kB"
