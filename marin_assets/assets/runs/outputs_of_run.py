"""The outputs that a run of Dagster has materialized, computed or reused, from its event log."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg


@dataclass(frozen=True, kw_only=True)
class RunOutputs:
    run_id: str
    paths: tuple[str, ...]
    """The path of each output's data."""


def outputs_of_run(instance: dg.DagsterInstance, run_id: str) -> RunOutputs | None:
    """The outputs of the run with this id; None if the instance has no such run."""
    if instance.get_run_by_id(run_id) is None:
        return None
    logged = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    materializations = (entry.asset_materialization for entry in logged)
    uris = (
        materialization.metadata.get("dagster/uri")
        for materialization in materializations
        if materialization is not None
    )
    paths = (str(uri.value).removeprefix("file://") for uri in uris if uri is not None)
    return RunOutputs(run_id=run_id, paths=tuple(dict.fromkeys(paths)))


def run_with(instance: dg.DagsterInstance, begins: str) -> str | None:
    """The id of the run whose id begins so; None if no run or several runs match."""
    if instance.get_run_by_id(begins) is not None:
        return begins
    matching = [run_id for run_id in instance.get_run_ids() if run_id.startswith(begins)]
    return matching[0] if len(matching) == 1 else None
