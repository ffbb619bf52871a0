"""Whether the holder of a lease in a bucket is gone, by the observer's own clock.

A holder's clock may be an hour off, so its timestamps decide nothing. What counts is that the lease's generation did
not change for its whole time to live while this process watched.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from marin_resources.output import Holder


class LeaseWatch:
    """Watches one lease. `now_s` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._generation: str | None = None
        self._since_s = 0.0

    def begin(self) -> float:
        """To be called before each look at the lease; give the result to `is_stale`."""
        return self._now_s()

    def is_stale(self, holder: Holder, looked_at_s: float) -> bool:
        """Whether the lease has not changed for its time to live. A lease that the kernel keeps never is."""
        if holder.ttl_s is None:
            return False
        if holder.generation != self._generation:
            self._generation, self._since_s = holder.generation, self._now_s()
            return False
        return looked_at_s - self._since_s > holder.ttl_s
