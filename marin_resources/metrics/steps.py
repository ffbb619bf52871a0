"""The work of steps, by the materializations and failures that Dagster has stored since the last look.

Runs that attach to one computation all report its output, and all report its failure. An attempt is counted once, by
its log and its run; the further reports of an output count as "attached".

The counters begin at zero when the process begins, as Prometheus expects of a process that was started again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from marin_resources.orchestrator.produce import FAILED_ATTEMPTS

OVERLAP = timedelta(minutes=5)
"""A run may be stored some time after the time that it has."""
AT_ONCE = 1000
"""Events that one query reads."""
PHASES = {"queue_s": "queue", "setup_s": "setup", "compute_s": "compute"}
"""Metadata of a materialization -> the phase of its step."""
ATTEMPT = ("log", "made_in", "duration_s")
"""Metadata of a materialization that are of the attempt which computed the output. An output that was removed and is
computed again may have the same log."""
EARLIER = 50
"""Reports of one output that one query reads."""
MOST_FAILED = 10_000
"""Attempts that failed, of which another run may report the failure later."""
SLICES = {"slices_waited_s": "waited", "startup_s": "startup", "kept_s": "kept", "lost_s": "lost"}
"""Metadata of the tries of a step on slices -> phase. Goodput is kept over all."""


Counts = defaultdict[str, float]


def new_counts() -> Counts:
    return defaultdict(float)


@dataclass(kw_only=True)
class Steps:
    """Counters, and how far Dagster's history has been read."""

    instance: dg.DagsterInstance
    outcomes: Counts = field(default_factory=new_counts)
    """ "computed", "attached", "reused", "failed" -> outputs; of a failed step, its runs."""
    seconds: Counts = field(default_factory=new_counts)
    """Phase -> seconds, of what was computed."""
    slice_seconds: Counts = field(default_factory=new_counts)
    tries: Counts = field(default_factory=new_counts)
    """End of a try on slices -> number of tries."""
    mirrored_bytes: int = 0
    _cursor: int | None = None
    _ended: set[str] = field(default_factory=set)
    """Runs whose failures were counted, of those that the next look may find again."""
    _failed_attempts: dict[str, None] = field(default_factory=dict)
    """Their logs, the newest last."""
    _since: datetime = field(default_factory=lambda: datetime.now(UTC))

    def read(self) -> None:
        """Count what is new. The first call counts nothing: it notes where the history ends."""
        if self._cursor is None:
            self._cursor = self._last_event()
            return
        for record in self._new_materializations():
            self._count(record)
        self._count_failures()

    def _last_event(self) -> int:
        last = self.instance.event_log_storage.get_event_records(_materializations(None), limit=1)
        return last[0].storage_id if last else 0

    def _new_materializations(self) -> Iterator[dg.EventLogRecord]:
        while True:
            page = self.instance.event_log_storage.get_event_records(
                _materializations(self._cursor), limit=AT_ONCE, ascending=True
            )
            for record in page:
                self._cursor = record.storage_id
                if record.asset_materialization is not None:
                    yield record
            if len(page) < AT_ONCE:
                return

    def _count(self, record: dg.EventLogRecord) -> None:
        metadata = _metadata(record)
        if _is_reused(metadata):
            self.outcomes["reused"] += 1
            return
        if self._was_reported(record, metadata):
            self.outcomes["attached"] += 1
            return
        self.outcomes["computed"] += 1
        for name, phase in PHASES.items():
            self.seconds[phase] += _number(metadata, name)
        for name, phase in SLICES.items():
            self.slice_seconds[phase] += _number(metadata, name)
        self.mirrored_bytes += int(_number(metadata, "transferred_bytes"))
        for row in _rows(metadata.get("tries")):
            self.tries[str(row.get("end"))] += 1

    def _was_reported(self, record: dg.EventLogRecord, metadata: Mapping[str, dg.MetadataValue]) -> bool:
        """Whether an earlier run has reported the output as computed by the same attempt, also before this process."""
        attempt, event = _attempt(metadata), record.asset_materialization
        if attempt[0] is None or event is None:
            return False
        before = record.storage_id
        while True:
            earlier = self.instance.event_log_storage.get_event_records(
                dg.EventRecordsFilter(
                    dg.DagsterEventType.ASSET_MATERIALIZATION,
                    asset_key=event.asset_key,
                    asset_partitions=None if event.partition is None else [event.partition],
                    before_cursor=before,
                ),
                limit=EARLIER,
            )
            for earlier_record in earlier:
                earlier_metadata = _metadata(earlier_record)
                if not _is_reused(earlier_metadata):
                    return _attempt(earlier_metadata) == attempt
            if len(earlier) < EARLIER:
                return False
            before = earlier[-1].storage_id

    def _count_failures(self) -> None:
        """The steps that failed in runs that have ended since the last look, or a little before."""
        now = datetime.now(UTC)
        failed = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=self._since)
        ended = {record.dagster_run.run_id for record in self.instance.get_run_records(failed)}
        for run_id in ended - self._ended:
            events = self.instance.all_logs(run_id, of_type={dg.DagsterEventType.STEP_FAILURE})
            self.outcomes["failed"] += sum(map(self._is_new_failure, events))
        self._ended, self._since = ended, max(self._since, now - OVERLAP)

    def _is_new_failure(self, entry: dg.EventLogEntry) -> bool:
        """Whether the failure is of an attempt that was not counted, or of none: an input was missing, for example."""
        data = entry.get_dagster_event().step_failure_data.user_failure_data
        attempts = data.metadata.get(FAILED_ATTEMPTS) if data is not None else None
        logs = list(attempts.value) if isinstance(attempts, dg.JsonMetadataValue) else []  # type: ignore[arg-type]
        is_new = not logs or any(log not in self._failed_attempts for log in logs)
        self._failed_attempts |= dict.fromkeys(logs)
        while len(self._failed_attempts) > MOST_FAILED:
            del self._failed_attempts[next(iter(self._failed_attempts))]
        return is_new


def _metadata(record: dg.EventLogRecord) -> Mapping[str, dg.MetadataValue]:
    event = record.asset_materialization
    return {} if event is None else event.metadata


def _attempt(metadata: Mapping[str, dg.MetadataValue]) -> list[Any]:
    return [entry.value if (entry := metadata.get(name)) is not None else None for name in ATTEMPT]


def _is_reused(metadata: Mapping[str, dg.MetadataValue]) -> bool:
    reused = metadata.get("reused")
    return reused is not None and reused.value is True


def _materializations(after: int | None) -> dg.EventRecordsFilter:
    return dg.EventRecordsFilter(dg.DagsterEventType.ASSET_MATERIALIZATION, after_cursor=after)


def _number(metadata: Mapping[str, dg.MetadataValue], name: str) -> float:
    entry = metadata.get(name)
    return float(entry.value) if entry is not None and isinstance(entry.value, int | float) else 0.0


def _rows(table: Any) -> Iterator[Mapping[str, Any]]:
    for record in getattr(table, "records", None) or ():
        yield record.data
