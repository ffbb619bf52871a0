"""The event that a run has failed is read when the run is marked as failed, not before.

Dagster (1.13.27) stores the event first, and marks the run afterwards. Its daemon, which launches lost runs again, may
read the event in between: it then takes the run for one under way, and never looks at it again. This happens when a
machine is started again, as the daemon's threads begin together.

Related: dagster-io/dagster#33741, a retry that was not launched. Without this, a lost run may stay lost.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from dagster import DagsterEventType, DagsterInstance, EventLogEntry

MARKED_S = 60.0
"""An event that is older is read in any case: its writer may have died before it marked the run."""


class FailuresAfterStatus:
    """To be mixed into an event log, before Dagster's class."""

    _instance: DagsterInstance

    def get_logs_for_all_runs_by_log_id(
        self,
        after_cursor: int = -1,
        dagster_event_type: DagsterEventType | set[DagsterEventType] | None = None,
        limit: int | None = None,
    ) -> Mapping[int, EventLogEntry]:
        """The events after the cursor, up to the first that a run has failed which is not yet marked as ended."""
        storage: Any = super()
        entries = storage.get_logs_for_all_runs_by_log_id(after_cursor, dagster_event_type, limit)
        return dict(takewhile(lambda item: not self._awaits_mark(item[1]), entries.items()))

    def _awaits_mark(self, entry: EventLogEntry) -> bool:
        is_end = entry.dagster_event is not None and entry.dagster_event.event_type is DagsterEventType.RUN_FAILURE
        if not is_end or entry.timestamp < time.time() - MARKED_S:
            return False
        run = self._instance.get_run_by_id(entry.run_id)
        return run is not None and not run.is_finished
