"""Reads of the cluster that all waiting steps of a run share: one request for all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedRead(Generic[T]):
    """A value that is read again when it is older than its reader allows. For tasks of one event loop."""

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._reading = asyncio.Lock()
        self._found: tuple[float, T] | None = None
        """When it was read by the monotonic clock, and the value."""

    async def get(self, max_age_s: float) -> T:
        """Return the value. Raises what reading it raises; the next caller then reads again."""
        async with self._reading:
            if self._found is None or time.monotonic() - self._found[0] >= max_age_s:
                value = await self._read()
                self._found = time.monotonic(), value
            return self._found[1]
