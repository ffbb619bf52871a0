"""Decide by the observer's own clock whether the holder of a lease in a bucket is gone.

A holder's clock may be an hour off, so its timestamps decide nothing. A lease is stale if its generation did not change
for its whole time to live while this process watched.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from marin_resources.types.output import Holder


class LeaseWatch:
    """Watches one lease. `now_s` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._generation: str | None = None
        self._since_s = 0.0

    def begin(self) -> float:
        """Call it before each read of the lease, and pass the result to `is_stale`."""
        return self._now_s()

    def is_stale(self, holder: Holder, looked_at_s: float) -> bool:
        """Whether the lease did not change for its time to live. A kernel lock is never stale."""
        if holder.ttl_s is None:
            return False
        if holder.generation != self._generation:
            self._generation, self._since_s = holder.generation, self._now_s()
            return False
        return looked_at_s - self._since_s > holder.ttl_s
