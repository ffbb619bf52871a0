"""The code server is killed under a run: the run can be terminated all the same; if its process is killed too, it is
launched again when the code server is back, and not given up before."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster_homes import laptop_home
from dagster_processes import CODE, DagsterProcesses, dagster_processes
from running import logged, wait_until, write_location

from marin_resources.dagster_fixes.run_launcher import process_of

pytestmark = pytest.mark.long


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    return laptop_home(tmp_path / "home")


@pytest.fixture
def deployed(home: Path, gate: Path, tmp_path: Path, prefix: Path) -> Iterator[DagsterProcesses]:
    write_location(tmp_path, gate=gate)
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    with dagster_processes(tmp_path / "location.py", tmp_path, env) as deployed:
        yield deployed


def begin(deployed: DagsterProcesses, home: Path, prefix: Path) -> tuple[str, int]:
    """A run whose step waits, and the number of its process."""
    run_id = deployed.ui.launch("toy/slow")
    wait_until(logged(prefix, "toy/slow", "waiting in process"), "the step", timeout_s=300)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        run = instance.get_run_by_id(run_id)
    assert run is not None
    process = process_of(run)
    assert process is not None
    return run_id, int(process.split("/")[1])


@pytest.mark.parametrize("back", [True, False], ids=["another code server", "no code server"])
def test_it_is_terminated(deployed: DagsterProcesses, home: Path, prefix: Path, back: bool) -> None:
    run_id, pid = begin(deployed, home, prefix)
    deployed.kill(CODE)
    if back:
        deployed.start(CODE)
    deployed.ui.terminate(run_id)
    wait_until(lambda: deployed.ui.status(run_id) == "CANCELED", "the run's end", timeout_s=120)
    wait_until(lambda: not psutil.pid_exists(pid), "the end of its process", timeout_s=60)
    if not back:
        deployed.start(CODE)  # for the end of the test


def test_it_is_launched_again_when_the_code_server_is_back(
    deployed: DagsterProcesses, home: Path, prefix: Path, gate: Path
) -> None:
    run_id, pid = begin(deployed, home, prefix)
    deployed.kill(CODE)
    os.kill(pid, signal.SIGKILL)
    time.sleep(30)  # three looks of the daemon's monitoring
    assert deployed.ui.status(run_id) == "STARTED"
    gate.unlink()
    deployed.start(CODE)
    wait_until(lambda: deployed.ui.statuses_of_retries(run_id) == ["SUCCESS"], "the run again", timeout_s=300)
    assert deployed.ui.status(run_id) == "FAILURE"
