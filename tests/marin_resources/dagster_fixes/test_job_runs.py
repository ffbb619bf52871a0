"""A run of a script is listed under its job of the code location, and executed by the job's executor."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import dagster as dg
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from marin_resources.dagster_fixes.job_runs import (
    DEFINITIONS,
    LOCATION,
    execute_stored_run,
    location_job_origin,
    store_run,
)
from marin_resources.orchestrator.executor import marin_executor

together = threading.Barrier(2, timeout=60)


@dg.asset
async def one() -> None:
    await _both_run()


@dg.asset
async def two() -> None:
    await _both_run()


async def _both_run() -> None:
    """Returns when the other step runs too, as under the executor of the job."""
    import asyncio

    await asyncio.to_thread(together.wait)


def job() -> dg.JobDefinition:
    jobs = [dg.define_asset_job("quickstart", "*")]
    return dg.Definitions(assets=[one, two], jobs=jobs, executor=marin_executor).resolve_job_def("quickstart")


def stored(instance: dg.DagsterInstance, selected: frozenset[dg.AssetKey] | None = None) -> dg.DagsterRun:
    return store_run(
        instance,
        job() if selected is None else job().get_subset(asset_selection=selected),
        run_id=str(uuid.uuid4()),
        tags={"marin/user": "ada"},
        config={},
        selected=selected,
        origin=location_job_origin("quickstart"),
    )


def test_a_run_is_stored_as_one_of_the_code_location(instance: dg.DagsterInstance) -> None:
    run = stored(instance, frozenset({dg.AssetKey("one")}))
    [found] = instance.get_runs(filters=dg.RunsFilter(job_name="quickstart", tags=of_the_location()))
    assert (found.run_id, found.status, found.tags["marin/user"]) == (
        run.run_id,
        dg.DagsterRunStatus.NOT_STARTED,
        "ada",
    )
    assert found.asset_selection == {dg.AssetKey("one")}


def of_the_location() -> dict[str, str]:
    """The tags by which Dagster's UI finds the runs of the code location of workspace.yaml."""
    target = LoadableTargetOrigin(module_name=DEFINITIONS)
    location = ManagedGrpcPythonEnvCodeLocationOrigin(target, location_name=LOCATION)
    return {REPOSITORY_LABEL_TAG: RemoteRepositoryOrigin(location, "__repository__").get_label()}


def test_a_run_without_an_origin_is_none_of_it(instance: dg.DagsterInstance) -> None:
    run = store_run(instance, job(), run_id=str(uuid.uuid4()), tags={}, config={}, selected=None, origin=None)
    assert REPOSITORY_LABEL_TAG not in run.tags
    assert instance.get_runs(filters=dg.RunsFilter(tags=of_the_location())) == []


def test_the_steps_of_a_run_are_executed_together_by_its_jobs_executor(instance: dg.DagsterInstance) -> None:
    run = stored(instance)
    result: Any = execute_stored_run(instance, job(), run)
    assert result.success
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.status is dg.DagsterRunStatus.SUCCESS
    assert found.remote_job_origin is not None
    assert found.remote_job_origin.job_name == "quickstart"
