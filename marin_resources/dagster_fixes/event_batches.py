"""Events of many partitions are stored together: by some statements for hundreds, in place of some for each.

A run of 10,000 partitions has 10,000 materializations, and as many events that they are planned. As published (1.13.27)
Dagster's SQLite event log stores them one by one, in four transactions each. Its Postgres event log does so with the
planned ones, over three connections each: in a deployment such a run was not created within the three minutes that its
start may take, was given up, and launched again. Both logs store batches here; Dagster collects them by this variable:

    DAGSTER_EVENT_BATCH_SIZE   events in one batch; set by this event log, if nothing has set it

A process that dies in between loses the events of a batch, never an output: the next run reports it again.

See dagster-io/dagster#19618. Without this, the time of a run grows with its number of partitions.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Sequence
from typing import Any

from dagster import AssetMaterialization, DagsterEvent, DagsterEventType, DagsterInstance, EventLogEntry
from dagster._core.events import DagsterEventBatchMetadata, StepMaterializationData
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as EVENTS

ASSET_EVENTS = {
    DagsterEventType.ASSET_MATERIALIZATION,
    DagsterEventType.ASSET_OBSERVATION,
    DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
    DagsterEventType.ASSET_FAILED_TO_MATERIALIZE,
}
VARIABLE, BATCH_SIZE = "DAGSTER_EVENT_BATCH_SIZE", 500
INSERT = EVENTS.insert().returning(EVENTS.c.id, sort_by_parameter_order=True)


class StoresBatches:
    """To be mixed into an event log, before Dagster's class."""

    _event_to_row: Any
    _store_asset_event: Any
    _store_asset_event_tags: Any
    index_transaction: Any
    store_event: Any

    @staticmethod
    def enable() -> None:
        """Let Dagster collect the events of this process, and of its children, in batches."""
        os.environ.setdefault(VARIABLE, str(BATCH_SIZE))

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Store the events. Those that are about no asset's data are stored one by one."""
        together = [entry for entry in events if entry.dagster_event_type in ASSET_EVENTS]
        for run_id in dict.fromkeys(entry.run_id for entry in together):
            self._store_together(run_id, [entry for entry in together if entry.run_id == run_id])
        for entry in events:
            if entry.dagster_event_type not in ASSET_EVENTS:
                self.store_event(entry)

    def _store_together(self, run_id: str, events: Sequence[EventLogEntry]) -> None:
        rows = [self._event_to_row(entry) for entry in events]
        self._store_in_log_of_run(run_id, rows)
        with self.index_transaction() as connection:
            ids = list(connection.execute(INSERT, rows).scalars())
            self._store_asset_event_tags(connection, events, ids)
            for number in _newest(events):
                self._store_asset_event(connection, events[number], ids[number])

    def _store_in_log_of_run(self, run_id: str, rows: Sequence[dict[str, Any]]) -> None:
        """Store rows in the run's own database beside the index, if it has one."""


def report_together(instance: DagsterInstance, materializations: Sequence[AssetMaterialization]) -> None:
    """Report materializations without a run, as `report_runless_asset_event` reports one, in this order."""
    batch, last = str(uuid.uuid4()), len(materializations) - 1
    for i, materialization in enumerate(materializations):
        event = DagsterEvent(
            event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
            job_name="",
            event_specific_data=StepMaterializationData(materialization),
        )
        together = DagsterEventBatchMetadata(batch, is_end=i == last)
        instance.report_dagster_event(event, "", logging.INFO, batch_metadata=together)


def _newest(events: Sequence[EventLogEntry]) -> list[int]:
    """The places of the newest event of each type and asset, in order: an asset's row holds nothing of older ones."""
    newest = {(entry.dagster_event_type, entry.get_dagster_event().asset_key): i for i, entry in enumerate(events)}
    return sorted(newest.values())
