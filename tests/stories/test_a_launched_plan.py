"""`marin run --launch`: the daemon of the deployment computes what the plan says, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster_processes import dagster_processes
from running import ROOT, wait_until

LOCATION = "from marin_assets.definitions import defs\n"


@pytest.mark.long
def test_the_daemon_computes_what_was_launched(tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(ROOT / ".dagster/dagster.yaml", home)
    location = tmp_path / "location.py"
    location.write_text(LOCATION)
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    def marin(*words: str) -> str:
        command = [sys.executable, "-m", "marin_assets.cli", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout

    assert marin("plan", "two_steps").splitlines()[-1] == "2 to run"
    launched = marin("run", "two_steps", "--launch").removeprefix("run: ").strip()
    with dagster_processes(location, tmp_path, env) as dagster, dg.DagsterInstance.get() as instance:

        def has_ended() -> bool:
            run = instance.get_run_by_id(launched)
            return run is not None and run.is_finished

        wait_until(has_ended, "the launched run to end", timeout_s=240)
        run = instance.get_run_by_id(launched)
        assert run is not None
        assert run.status is dg.DagsterRunStatus.SUCCESS, dagster.log()
    assert marin("plan", "two_steps").splitlines()[-1].startswith("2 to reuse")
