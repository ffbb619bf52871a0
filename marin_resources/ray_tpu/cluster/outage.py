"""Ride out a dashboard, a head or a network that is away for minutes: the job goes on meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from marin_resources.ray_tpu.cluster.api.jobs_api import UnreachableError
from marin_resources.ray_tpu.cluster.errors import ClusterError

T = TypeVar("T")
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0
TELL_EVERY_S = 60.0


class OutageError(ClusterError):
    """The cluster has not answered for longer than anybody wants to wait: one sentence."""


class Patience:
    """Asks a cluster again and again while it does not answer."""

    def __init__(self, address: str, timeout_s: float, say: Callable[[str], None]) -> None:
        self._address, self._timeout_s, self._say = address, timeout_s, say

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer. Raises OutageError if there is none for `timeout_s`, and at once whatever else `call` raises."""
        began_s = told_s = None
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                answer = await call()
            except UnreachableError as error:
                now_s = time.monotonic()
                began_s = began_s or now_s
                if now_s - began_s > self._timeout_s:
                    raise OutageError(self._gave_up(error)) from error
                if told_s is None or now_s - told_s > TELL_EVERY_S:
                    told_s = now_s
                    self._say(self._waiting(error, now_s - began_s))
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                if began_s is not None:
                    self._say(f"the cluster {self._address} answers again, after {time.monotonic() - began_s:.0f} s")
                return answer

    def _waiting(self, error: UnreachableError, since_s: float) -> str:
        return (
            f"the cluster {self._address} does not answer ({_phrase(error)}); jobs go on without it, so it is waited "
            f"for, {self._timeout_s - since_s:.0f} s at most"
        )

    def _gave_up(self, error: UnreachableError) -> str:
        return (
            f"The cluster {self._address} has not answered for {self._timeout_s:.0f} s ({_phrase(error)}). What it "
            "computes may go on; materialize the same again when it is back, to attach to it."
        )


def _phrase(error: Exception) -> str:
    return str(error).rstrip(".")
