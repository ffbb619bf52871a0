"""Delete the runs that only reused: a nightly run over complete outputs leaves as many events as one that computes.

In:  an instance and a time.   Out: the runs that ended before it, computed nothing, and are the latest of nothing.

Dagster deletes a materialization with its run. So a run remains if an asset, a partition or a check shows it as its
latest, and every page of an asset stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache

import dagster as dg

PAGE = 1000
ENDED = ("COMPLETED", "COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED")
"""Statuses of a backfill whose runs are not awaited."""
OF_ASSETS = {
    dg.DagsterEventType.ASSET_MATERIALIZATION,
    dg.DagsterEventType.ASSET_OBSERVATION,
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
}


def successful_runs(instance: dg.DagsterInstance, before: datetime) -> list[str]:
    """The ids of the runs that succeeded before then."""
    return list(instance.get_run_ids(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS], updated_before=before)))


class Reuses:
    """Finds the runs that only reused. What an asset shows is read once: later events make no run the latest."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self._shown = cache(self._read_shown)
        self._shown_by_check = cache(self._read_shown_by_check)

    def only_reused(self, run_id: str) -> bool:
        """Whether the run computed nothing and is the latest of nothing: then it can be deleted."""
        run = self.instance.get_run_by_id(run_id)
        if run is None or self._is_awaited(run):
            return False
        reused = False
        for event in self._events(run_id):
            if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                if self._shown_by_check(event.asset_check_evaluation_data.asset_check_key) == run_id:
                    return False
            elif event.event_type is dg.DagsterEventType.ASSET_OBSERVATION:
                return False
            else:
                materialization = event.step_materialization_data.materialization
                tags = materialization.tags or {}
                if tags.get("marin/reused") != "true" or run_id in self._shown(materialization.asset_key):
                    return False
                reused = True
        return reused or self._has_no_event(run_id)

    def delete(self, run_id: str) -> None:
        """Delete what the run printed, its events, then the run: an interrupted deletion is continued."""
        self.instance.compute_log_manager.delete_logs(prefix=[run_id])
        self.instance.event_log_storage.delete_events(run_id)
        self.instance.delete_run(run_id)

    def _is_awaited(self, run: dg.DagsterRun) -> bool:
        """Whether a backfill that is under way still counts the run."""
        backfill_id = run.tags.get("dagster/backfill")
        backfill = self.instance.get_backfill(backfill_id) if backfill_id else None
        return backfill is not None and backfill.status.value not in ENDED

    def _events(self, run_id: str) -> Iterator[dg.DagsterEvent]:
        cursor, more = None, True
        while more:
            page = self.instance.get_records_for_run(run_id, cursor=cursor, of_type=OF_ASSETS, limit=PAGE)
            for record in page.records:
                yield record.event_log_entry.get_dagster_event()
            cursor, more = page.cursor, page.has_more

    def _has_no_event(self, run_id: str) -> bool:
        """Whether an earlier deletion ended between the events and the run."""
        return not self.instance.get_records_for_run(run_id, limit=1).records

    def _read_shown(self, key: dg.AssetKey) -> frozenset[str]:
        """The runs of the latest materialization of the asset, and of each of its partitions.

        By run, not by the id of an event: on SQLite the log of a run has ids of its own.
        """
        records = [record.asset_entry.last_materialization_record for record in self.instance.get_asset_records([key])]
        runs = {record.run_id for record in records if record is not None}
        kind = dg.DagsterEventType.ASSET_MATERIALIZATION
        ids = list(self.instance.event_log_storage.get_latest_storage_id_by_partition(key, kind).values())
        for begin in range(0, len(ids), PAGE):
            records_filter = dg.AssetRecordsFilter(asset_key=key, storage_ids=ids[begin : begin + PAGE])
            runs |= {
                record.run_id for record in self.instance.fetch_materializations(records_filter, limit=PAGE).records
            }
        return frozenset(runs)

    def _read_shown_by_check(self, key: dg.AssetCheckKey) -> str | None:
        record = self.instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
        return record.run_id if record is not None else None
