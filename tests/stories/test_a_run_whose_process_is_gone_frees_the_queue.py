"""A machine that goes down leaves a run STARTED; the next `make dev` says that it is gone, and the queue goes on."""

import shutil
from pathlib import Path

import psutil
import pytest
from dagster_dev import dagster_dev
from running import ROOT, logged, wait_until, write_location


@pytest.mark.long
def test_it_is_marked_as_failed_and_the_next_run_begins(tmp_path: Path, prefix: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    home.mkdir()
    gate.touch()
    shutil.copy(ROOT / ".dagster/dagster.yaml", home)
    workspace = write_location(tmp_path, gate=gate)
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    with dagster_dev(workspace, tmp_path / "dev.log", env) as dev:
        lost = dev.launch("toy/slow")
        wait_until(logged(prefix, "toy/slow", "waiting in process"), "the slow step", timeout_s=300)
        kill_all_with("DAGSTER_HOME", str(home))
    gate.unlink()
    with dagster_dev(workspace, tmp_path / "dev2.log", env) as dev:
        following = dev.launch("toy/slow")
        wait_until(lambda: dev.status(following) == "SUCCESS", "the run after", timeout_s=300)
        assert dev.status(lost) == "FAILURE"
        assert any("The process of this run is gone" in message for message in dev.messages(lost))
        wait_until(lambda: dev.statuses_of_retries(lost) == ["SUCCESS"], "the lost run, once more", timeout_s=300)


def kill_all_with(variable: str, value: str) -> None:
    """kill -9 for every process that has the variable."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(variable) == value and process.pid != psutil.Process().pid:
                process.kill()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # gone already, or the kernel's
