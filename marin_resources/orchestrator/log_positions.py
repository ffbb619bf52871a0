"""How far runs have passed on the log of a job: kept in the Dagster instance, so that a run that goes on with the job
after the first one was killed does not show it all again.

In:  a job's submission id, and bytes of its attempt's log.   Out: one row for each job among the instance's key-values.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import dagster as dg

WRITE_EVERY_S = 5.0


class LogPositions:
    """Calls go to the instance's database and block: not for an event loop's thread."""

    def __init__(self, instance: dg.DagsterInstance, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._storage, self._clock_s = instance.run_storage, clock_s
        self._noted: dict[str, int] = {}
        self._written_at_s: dict[str, float] = {}

    def of(self, submission_id: str) -> int:
        """0 if nothing was noted."""
        key = _key(submission_id)
        text = self._storage.get_cursor_values({key}).get(key, "")
        return int(text) if text.isdigit() else 0

    def note(self, submission_id: str, bytes: int) -> None:
        """Written at most every 5 s; so much of a log may be shown twice after a crash."""
        now_s = self._clock_s()
        if (
            bytes == self._noted.get(submission_id, 0)
            or now_s < self._written_at_s.get(submission_id, 0) + WRITE_EVERY_S
        ):
            return
        self._storage.set_cursor_values({_key(submission_id): str(bytes)})
        self._noted[submission_id], self._written_at_s[submission_id] = bytes, now_s

    def forget(self, submission_id: str) -> None:
        """The job has ended, and all of its log was passed on. An instance removes no key; it holds nothing then."""
        if self._noted.pop(submission_id, None) is not None or self.of(submission_id):
            self._storage.set_cursor_values({_key(submission_id): ""})
        self._written_at_s.pop(submission_id, None)


def _key(submission_id: str) -> str:
    return f"marin/log/{submission_id}"
