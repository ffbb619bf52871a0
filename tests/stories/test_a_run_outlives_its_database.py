"""Postgres is restarted, or away, while a run goes on: the run waits for it, and nothing is computed twice."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from postgres_server import Postgres, postgres
from running import ROOT, logged, run_steps, wait_until
from sqlalchemy.exc import OperationalError
from toy_steps import toy, wait_at_gate

from marin_resources.dagster_fixes import retry_policy


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture
def deployed(server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """An instance with the settings of a deployment on one machine."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(ROOT / "deploy/vm/dagster.yaml", home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("MARIN_POSTGRES_URL", server.create(f"away_{time.time_ns()}"))
    monkeypatch.setattr(retry_policy, "_retry_timeout_s", 0.0)  # what a run sets ends with the test
    with dg.DagsterInstance.get() as instance:
        yield instance


def restart(server: Postgres) -> None:
    server.stop("fast")
    server.start()


def away(server: Postgres) -> None:
    """Twice as long as Dagster's own classes try."""
    server.stop("immediate")
    time.sleep(15)
    server.start()


@pytest.mark.long
@pytest.mark.parametrize("strike", [restart, away])
def test_a_step_that_ends_meanwhile_is_reported_when_it_is_back(
    deployed: dg.DagsterInstance,
    server: Postgres,
    prefix: Path,
    tmp_path: Path,
    shared_ray: None,
    strike: Callable[[Postgres], None],
) -> None:
    gate = tmp_path / "gate"
    gate.touch()

    def act() -> None:
        wait_until(logged(prefix, "toy/slow", "waiting in process"), "the step")
        opened = threading.Timer(1, gate.unlink)  # while it is away
        opened.start()
        strike(server)
        opened.join()

    slow = toy("slow", wait_at_gate, gate=str(gate))
    striker = threading.Thread(target=act)
    striker.start()
    result = run_steps([toy("after", reads=slow)], deployed)
    striker.join()
    assert result.success
    [run] = deployed.get_runs()
    assert run.status is dg.DagsterRunStatus.SUCCESS
    made = [event.asset_key.path[-1] for event in result.get_asset_materialization_events()]
    assert made == ["slow", "after"]
    stored = deployed.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    assert [entry.get_dagster_event().asset_key.path[-1] for entry in stored] == made  # type: ignore[union-attr]
    called = (tmp_path / "calls.txt").read_text().splitlines()
    assert [name.partition("-")[0] for name in called] == made


@pytest.mark.long
def test_a_process_without_a_run_is_told_at_once(deployed: dg.DagsterInstance, server: Postgres) -> None:
    server.stop("fast")
    try:
        began_s = time.monotonic()
        with pytest.raises(OperationalError):
            deployed.get_runs_count()
        assert time.monotonic() - began_s < 5
    finally:
        server.start()
    assert deployed.get_runs_count() == 0
