"""Retry requests while a dashboard, a head or the network is down: jobs keep running meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from marin_resources.ray_tpu.cluster.errors import OutageError, UnreachableError

T = TypeVar("T")
FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 5.0
REPORT_INTERVAL_S = 60.0


class RetryWhileUnreachable:
    """Retries requests to one cluster, with growing pauses, and reports the outage once a minute."""

    def __init__(self, address: str, timeout_s: float, report: Callable[[str], None]) -> None:
        self._address, self._timeout_s, self._report = address, timeout_s, report

    async def call(self, request: Callable[[], Awaitable[T]]) -> T:
        """Return the response. Raise OutageError after `timeout_s` of UnreachableError, and any other error at once."""
        outage_began_s = reported_s = None
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                response = await request()
            except UnreachableError as error:
                now_s = time.monotonic()
                outage_began_s = outage_began_s or now_s
                if now_s - outage_began_s > self._timeout_s:
                    raise OutageError(self._timeout_sentence(error)) from error
                if reported_s is None or now_s - reported_s > REPORT_INTERVAL_S:
                    reported_s = now_s
                    self._report(self._outage_sentence(error, now_s - outage_began_s))
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
            else:
                if outage_began_s is not None:
                    duration_s = time.monotonic() - outage_began_s
                    self._report(f"the cluster {self._address} answers again, after {duration_s:.0f} s")
                return response

    def _outage_sentence(self, error: UnreachableError, since_s: float) -> str:
        return (
            f"the cluster {self._address} does not answer ({_phrase(error)}); jobs keep running, and requests are "
            f"retried for {self._timeout_s - since_s:.0f} s at most"
        )

    def _timeout_sentence(self, error: UnreachableError) -> str:
        return (
            f"The cluster {self._address} has not answered for {self._timeout_s:.0f} s ({_phrase(error)}). Its jobs "
            "may still run; materialize the same again when it is back, to attach to them."
        )


def _phrase(error: Exception) -> str:
    return str(error).rstrip(".")
