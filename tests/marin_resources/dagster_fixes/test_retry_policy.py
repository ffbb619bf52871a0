"""A process that executes a run waits for a database that is away; another one does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
import sqlalchemy
from dagster_homes import new_home
from running import run_job

from marin_resources.dagster_fixes import postgres, retry_policy
from marin_resources.dagster_fixes.postgres import RetryingRunStorage
from marin_resources.orchestrator.executor import marin_executor
from marin_resources.ray_tpu.cluster.local.head import free_ports


@pytest.fixture(autouse=True)
def _as_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_policy, "_retry_timeout_s", 0.0)  # what a test sets ends with it


@pytest.fixture
def away() -> Callable[[], RetryingRunStorage]:
    """Opens the run storage of a Postgres that is not up."""
    [port] = free_ports(1)
    url = f"postgresql://marin@127.0.0.1:{port}/marin"
    return lambda: RetryingRunStorage(url, should_autocreate_tables=False)


def test_a_process_without_a_run_gets_the_error_at_once(away: Callable[[], RetryingRunStorage]) -> None:
    began_s = time.monotonic()
    with pytest.raises(sqlalchemy.exc.OperationalError), away().connect():
        pass
    assert time.monotonic() - began_s < postgres.FIRST_PAUSE_S


def test_a_process_with_a_run_tries_again_until_the_limit(
    away: Callable[[], RetryingRunStorage], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    clock = 0.0

    def sleep(pause_s: float) -> None:
        nonlocal clock
        pauses.append(pause_s)
        clock += pause_s

    monkeypatch.setattr(postgres, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: clock))
    retry_policy.enable_retries()
    with pytest.raises(sqlalchemy.exc.OperationalError), away().connect():
        pass
    assert pauses[:5] == [0.5, 1, 2, 4, 5]
    assert retry_policy.RUN_S - 5 <= sum(pauses) <= retry_policy.RUN_S


def test_the_executor_of_a_run_enables_the_retries(tmp_path: Path) -> None:
    during: list[float] = []

    @dg.asset
    async def step() -> None:
        during.append(retry_policy.retry_timeout_s())

    definitions = dg.Definitions(assets=[step], jobs=[dg.define_asset_job("job", "*")], executor=marin_executor)
    with dg.DagsterInstance.from_config(str(new_home(tmp_path / "home"))) as instance:
        assert retry_policy.retry_timeout_s() == 0
        assert run_job(definitions, "job", instance).success
    assert during == [retry_policy.RUN_S]
