"""Sides of a comparison from a run of Dagster: its outputs by their records, and all that these were made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from marin_assets.inspection.compare.side import Side, SideStep, side_of, with_ancestors
from marin_assets.inspection.explain.recorded_versions import RecordedVersions
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.notes.history import complete_record
from marin_resources.types.record import Record

THREADS = 16


def side_of_run(run_id: str, paths: Sequence[str], prefix: str) -> Side:
    """The side of a run that has materialized the outputs at these paths.

    Raises UnavailableError.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        read = list(pool.map(partial(_record, prefix), paths))
    records = [record for record in read if record is not None]
    gone = len(read) - len(records)
    note = f"Of {gone} outputs of run {run_id} no record is left." if gone else ""
    return _side(f"the run {run_id}", records, prefix, note)


def side_of_recorded_run(begins: str, prefix: str) -> Side | None:
    """The side of a run that this instance of Dagster does not know: the complete outputs below the prefix that it has
    computed. None if no record names it. Raises UnavailableError."""
    complete = CompleteOutputs(prefix)
    records = [
        record
        for record in complete.records(complete.marks).values()
        if str(record.dagster_run_id or "").startswith(begins) and record.output_path is not None
    ]
    if not records:
        return None
    run_id = str(records[0].dagster_run_id)
    note = f"This instance of Dagster does not know run {run_id}: what it reused, apart from inputs, is not known."
    return _side(f"the run {run_id}", records, prefix, note)


def _side(title: str, records: Iterable[Record], prefix: str, note: str) -> Side:
    steps = [
        SideStep(
            name=record.name or "",
            version=record.version or None,
            path=record.output_path,
            function=record.fn_name or "",
        )
        for record in records
    ]
    return side_of(title, with_ancestors(steps, prefix, RecordedVersions(prefix)), note)


def _record(prefix: str, path: str) -> Record | None:
    record = complete_record(prefix, path)
    return record if record is not None and record.output_path is not None else None
