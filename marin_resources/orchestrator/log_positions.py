"""How many bytes of a job's log its runs have shown. The Dagster instance stores it, so a run that attaches to the job
of a killed run continues there.

In:  a job's submission id, and bytes of its attempt's log.   Out: one row for each job among the instance's key-values.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import dagster as dg

WRITE_EVERY_S = 5.0


class LogPositions:
    """Each call blocks on the instance's database; do not call it from an event loop's thread."""

    def __init__(self, instance: dg.DagsterInstance, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._storage, self._clock_s = instance.run_storage, clock_s
        self._noted: dict[str, int] = {}
        self._written_at_s: dict[str, float] = {}

    def of(self, submission_id: str) -> int:
        """Bytes shown so far, 0 for an unknown job."""
        key = _key(submission_id)
        text = self._storage.get_cursor_values({key}).get(key, "")
        return int(text) if text.isdigit() else 0

    def note(self, submission_id: str, bytes: int) -> None:
        """Record the position, at most every 5 s; after a crash that much of the log may be shown twice."""
        now_s = self._clock_s()
        if (
            bytes == self._noted.get(submission_id, 0)
            or now_s < self._written_at_s.get(submission_id, 0) + WRITE_EVERY_S
        ):
            return
        self._storage.set_cursor_values({_key(submission_id): str(bytes)})
        self._noted[submission_id], self._written_at_s[submission_id] = bytes, now_s

    def forget(self, submission_id: str) -> None:
        """Clear the position of an ended job. An instance cannot remove a key, so its value becomes empty."""
        if self._noted.pop(submission_id, None) is not None or self.of(submission_id):
            self._storage.set_cursor_values({_key(submission_id): ""})
        self._written_at_s.pop(submission_id, None)


def _key(submission_id: str) -> str:
    return f"marin/log/{submission_id}"
