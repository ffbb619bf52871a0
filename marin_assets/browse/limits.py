"""The limits of requests: threads of the server; time and bytes of each request, and whether its reader is gone.

A request reads in a thread, and threads cannot be stopped. So every read of a file calls the watch of its request. It
raises when the time is over, the bytes are spent, or the browser has closed the connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
import anyio.to_thread

from marin_assets.browse.errors import LimitError
from marin_assets.browse.places import Places
from marin_resources.storage.watched_reads import watching

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a server."""

    threads: int = 4
    """Requests that read at once."""
    waiting_s: float = 20.0
    """Longest wait for a thread."""
    seconds: float = 20.0
    """Time of one request, for reading."""
    bytes: int = 4 * 1024**3
    """Bytes that one request reads from files, compressed as they are."""
    page_bytes: int = 32 * 1024**2
    """Characters of the rows that one page holds. A page of larger rows ends early."""


class ReaderGoneError(LimitError):
    """The browser has closed the connection."""


@dataclass(eq=False)
class RequestWatch:
    """The watch of one request (see `storage/watched_reads.py`)."""

    places: Places
    limits: Limits
    bytes_read: int = 0
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when the browser has closed the connection."""
    _end_s: float = 0.0

    def __post_init__(self) -> None:
        self._end_s = time.monotonic() + self.limits.seconds

    @property
    def seconds_left(self) -> float:
        return self._end_s - time.monotonic()

    def opened(self, place: str) -> None:
        self.places.require_shown(place)

    def read(self, count: int) -> None:
        self.bytes_read += count
        if self.gone.is_set():
            raise ReaderGoneError("The browser has closed the connection.")
        if self.bytes_read > self.limits.bytes:
            raise LimitError(
                f"The request has read {self.bytes_read:,} bytes, and its limit is {self.limits.bytes:,}. Open a "
                "smaller file, or a row nearer to the beginning."
            )
        if self.seconds_left < 0:
            raise LimitError(
                f"The request took longer than {self.limits.seconds:g} s, its limit, after {self.bytes_read:,} bytes. "
                "Open a smaller file, or a row nearer to the beginning."
            )


class Threads:
    """The threads of a server, with the limit on those that run at once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, read: Callable[[], T], watch: RequestWatch) -> T:
        """Call `read` in a thread, under the watch. Raises LimitError if no thread is free for too long."""
        if self._limiter is None:  # it belongs to an event loop
            self._limiter = anyio.CapacityLimiter(self._limits.threads)
        with anyio.move_on_after(self._limits.waiting_s) as waiting:
            await self._limiter.acquire_on_behalf_of(watch)
        if waiting.cancelled_caught:
            raise LimitError(
                f"The server reads for {self._limits.threads} other requests, its limit, and none ended within "
                f"{self._limits.waiting_s:g} s. Try again."
            )
        try:
            return await anyio.to_thread.run_sync(_watched, read, watch, limiter=anyio.CapacityLimiter(1))
        finally:
            self._limiter.release_on_behalf_of(watch)


def _watched(read: Callable[[], T], watch: RequestWatch) -> T:
    with watching(watch):
        return read()
