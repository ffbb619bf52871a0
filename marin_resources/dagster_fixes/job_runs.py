"""Runs of a script: each in its process, stored with the origin of a job of the code location.

The UI lists a run under the job of its origin, and can re-execute it.

`JobDefinition.execute_in_process` (1.13.27) is public, and takes neither the origin of a run nor the job's executor.
See dagster-io/dagster#17707 and dagster-io/dagster#19458. Without this, the UI does not list a script's run under its
job, and the steps of it run one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

LOCATION = "marin"
"""The name of the code location in workspace.yaml."""
DEFINITIONS = "marin_assets.definitions"


def location_job_origin(job: str) -> Any:
    """Dagster's RemoteJobOrigin of a job of the code location.

    Dagster reads names only, so the same origin fits every way of serving the code location.
    """
    from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
    from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

    location = ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(module_name=DEFINITIONS), LOCATION)
    return RemoteRepositoryOrigin(location, "__repository__").get_job_origin(job)


def store_run(
    instance: dg.DagsterInstance,
    job: dg.JobDefinition,
    *,
    run_id: str,
    tags: Mapping[str, str],
    config: Mapping[str, Any],
    selected: frozenset[dg.AssetKey] | None,
    origin: Any,
) -> dg.DagsterRun:
    """Store a run that has not begun."""
    return instance.create_run_for_job(
        job,
        run_id=run_id,
        tags=tags,
        run_config=config,
        asset_selection=selected,
        remote_job_origin=origin,
    )


def execute_stored_run(instance: dg.DagsterInstance, job: dg.JobDefinition, run: dg.DagsterRun) -> Any:
    """Execute a run by the executor of its job. Return Dagster's result."""
    # late, for their weight
    from dagster._core.definitions.job_base import InMemoryJob
    from dagster._core.execution.api import execute_run

    return execute_run(InMemoryJob(job), run, instance)
