"""Which runs Dagster's daemon launches again by itself, with the laptop's dagster.yaml: those that were lost."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test
from dagster_homes import laptop_home
from running import run_job

from marin_resources.dagster_fixes.run_launcher import terminal_tag
from marin_resources.orchestrator.executor import marin_executor

WILL_RETRY = "dagster/will_retry"


@pytest.fixture
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", str(laptop_home(tmp_path / "home")))
    with dg.DagsterInstance.get() as instance:
        yield instance


def lost(instance: dg.DagsterInstance, **fields: Any) -> dg.DagsterRun:
    """A run whose process is gone, as Dagster's run monitoring leaves it."""
    run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, **fields)
    instance.report_run_failed(run, "The process of this run is gone.")
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found


def will_retry(instance: dg.DagsterInstance, asset: dg.AssetsDefinition) -> str:
    """What Dagster notes of a run of the asset, which fails."""
    definitions = dg.Definitions(assets=[asset], jobs=[dg.define_asset_job("job", "*")], executor=marin_executor)
    result = run_job(definitions, "job", instance)
    assert not result.success
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    return run.tags[WILL_RETRY]


def test_a_run_that_was_lost_is_launched_again_once(laptop: dg.DagsterInstance) -> None:
    first = lost(laptop)
    assert first.tags[WILL_RETRY] == "true"
    origin = {"dagster/root_run_id": first.run_id, "dagster/parent_run_id": first.run_id}
    second = lost(laptop, root_run_id=first.run_id, parent_run_id=first.run_id, tags=origin)
    assert second.tags[WILL_RETRY] == "false"


def test_a_run_of_a_command_in_a_terminal_is_not_launched_by_the_daemon(laptop: dg.DagsterInstance) -> None:
    run_id = "1" * 32
    assert lost(laptop, run_id=run_id, tags=terminal_tag(run_id)).tags[WILL_RETRY] == "false"


def test_a_run_whose_step_fails_is_not(laptop: dg.DagsterInstance) -> None:
    @dg.asset
    async def bad() -> None:
        raise ValueError("no")

    assert will_retry(laptop, bad) == "false"


def test_a_run_that_is_refused_before_its_first_step_is_not(
    laptop: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dg.asset
    async def never() -> None: ...

    def refuse(*_: object) -> None:
        raise RuntimeError("The extra 'train' is not installed.")

    monkeypatch.setattr("marin_resources.orchestrator.executor.refuse_unmet", refuse)
    assert will_retry(laptop, never) == "false"


@pytest.mark.parametrize(("number", "again"), [(signal.SIGINT, "false"), (signal.SIGTERM, "true")])
def test_a_run_goes_on_after_a_redeployment_and_not_after_ctrl_c(
    laptop: dg.DagsterInstance, number: int, again: str
) -> None:
    @dg.asset
    async def long() -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        await asyncio.sleep(60)

    assert will_retry(laptop, long) == again
