"""What steps did, by the materializations and failures that Dagster has stored since the last look.

The counters begin at zero when the process begins, as Prometheus expects of a process that was started again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
from dagster._core.event_api import EventRecordsFilter

OVERLAP = timedelta(minutes=5)
"""A run may be stored some time after the time that it has."""
AT_ONCE = 1000
"""Events that one query reads."""
PHASES = {"queue_s": "queue", "setup_s": "setup", "compute_s": "compute"}
"""Metadata of a materialization -> the phase of its step."""
SLICES = {"slices_waited_s": "waited", "startup_s": "startup", "kept_s": "kept", "lost_s": "lost"}
"""Likewise, of the tries of a step on slices. Goodput is kept over all."""


Counts = defaultdict[str, float]


def new_counts() -> Counts:
    return defaultdict(float)


@dataclass(kw_only=True)
class Steps:
    """Counters, and how far Dagster's history has been read."""

    instance: dg.DagsterInstance
    outcomes: Counts = field(default_factory=new_counts)
    """ "computed", "reused", "failed" -> outputs; of a failed step, its runs."""
    seconds: Counts = field(default_factory=new_counts)
    """Phase -> seconds, of what was computed."""
    slice_seconds: Counts = field(default_factory=new_counts)
    tries: Counts = field(default_factory=new_counts)
    """How a try on slices ended -> how many."""
    mirrored_bytes: int = 0
    _cursor: int | None = None
    _ended: set[str] = field(default_factory=set)
    """Runs whose failures were counted, of those that the next look may find again."""
    _since: datetime = field(default_factory=lambda: datetime.now(UTC))

    def read(self) -> None:
        """Count what is new. The first call counts nothing: it notes where the history ends."""
        if self._cursor is None:
            self._cursor = self._last_event()
            return
        for event in self._new_materializations():
            self._count(event.metadata)
        self._count_failures()

    def _last_event(self) -> int:
        last = self.instance.event_log_storage.get_event_records(_materializations(None), limit=1)
        return last[0].storage_id if last else 0

    def _new_materializations(self) -> Iterator[dg.AssetMaterialization]:
        while True:
            page = self.instance.event_log_storage.get_event_records(
                _materializations(self._cursor), limit=AT_ONCE, ascending=True
            )
            for record in page:
                self._cursor = record.storage_id
                if record.asset_materialization is not None:
                    yield record.asset_materialization
            if len(page) < AT_ONCE:
                return

    def _count(self, metadata: Mapping[str, dg.MetadataValue]) -> None:
        reused = metadata.get("reused")
        if reused is not None and reused.value is True:
            self.outcomes["reused"] += 1
            return
        self.outcomes["computed"] += 1
        for name, phase in PHASES.items():
            self.seconds[phase] += _number(metadata, name)
        for name, phase in SLICES.items():
            self.slice_seconds[phase] += _number(metadata, name)
        self.mirrored_bytes += int(_number(metadata, "transferred_bytes"))
        for row in _rows(metadata.get("tries")):
            self.tries[str(row.get("end"))] += 1

    def _count_failures(self) -> None:
        """The steps that failed in runs that have ended since the last look, or a little before."""
        now = datetime.now(UTC)
        failed = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=self._since)
        ended = {record.dagster_run.run_id for record in self.instance.get_run_records(failed)}
        for run_id in ended - self._ended:
            events = self.instance.all_logs(run_id, of_type={dg.DagsterEventType.STEP_FAILURE})
            self.outcomes["failed"] += len(events)
        self._ended, self._since = ended, max(self._since, now - OVERLAP)


def _materializations(after: int | None) -> EventRecordsFilter:
    return EventRecordsFilter(dg.DagsterEventType.ASSET_MATERIALIZATION, after_cursor=after)


def _number(metadata: Mapping[str, dg.MetadataValue], name: str) -> float:
    found = metadata.get(name)
    return float(found.value) if found is not None and isinstance(found.value, int | float) else 0.0


def _rows(table: Any) -> Iterator[Mapping[str, Any]]:
    for record in getattr(table, "records", None) or ():
        yield record.data
