"""Watches one attempt at an output from outside, and reports when and how it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from marin_resources.storage.lease.lease import holder_of
from marin_resources.storage.lease.watch import LeaseWatch
from marin_resources.storage.output.attempts import read_attempt

GONE = "its worker is gone"


class AttemptWatch:
    """`path`: of the output. `now_s` is a monotonic clock."""

    def __init__(self, path: str, attempt: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._path, self._attempt, self._lease = path, attempt, LeaseWatch(now_s)

    def end(self) -> str | None:
        """The end of the attempt in a few words; None while it continues.

        A lease in a bucket must be seen without a renewal for its time to live until its worker counts as gone. Raises
        ControlFileError and UnavailableError.
        """
        looked_at_s = self._lease.begin()
        holder = holder_of(self._path)  # before the mark: a worker writes the outcome, then releases the lease
        try:
            outcome = read_attempt(self._path, self._attempt).get("outcome")
        except FileNotFoundError:  # the lease comes before the mark
            outcome = None
        if outcome is not None:
            return str(outcome)
        if holder is not None and holder.attempt != self._attempt:
            return f"overtaken by attempt {holder.attempt}" if holder.attempt else GONE
        if holder is None or self._lease.is_stale(holder, looked_at_s):
            return GONE
        return None
