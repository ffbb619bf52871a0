"""A run on this machine is stopped: what its step has started is gone, also what has left its group and session."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from process_shapes import SHAPES, alive
from running import logged, start_script, wait_until

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from toy_steps import start_all_shapes, toy
from marin_assets import executor_main

if __name__ == "__main__":
    executor_main([toy("daemons", start_all_shapes, note={token!r}, gate={folder!r})])
"""
STOPS: dict[str, Callable[[subprocess.Popen[str]], None]] = {
    "Ctrl-C": lambda run: os.killpg(run.pid, signal.SIGINT),
    "Terminate": lambda run: run.send_signal(signal.SIGTERM),
}


@pytest.mark.long
@pytest.mark.parametrize("stop", STOPS)
def test_on_the_runs_own_ray(stop: str, prefix: Path, dagster_home: Path, tmp_path: Path) -> None:
    folder, token = tmp_path / "pids", f"token-{uuid.uuid4().hex}"
    folder.mkdir()
    script = tmp_path / "experiment.py"
    tests = str(Path(__file__).parents[1] / "support")
    script.write_text(SCRIPT.format(tests=tests, token=token, folder=str(folder)))
    run = start_script(script, env={"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(dagster_home)})
    try:
        wait_until(logged(prefix, "toy/daemons", "all have started"), "the processes", timeout_s=300)
        assert len(alive(folder, token)) >= len(SHAPES)
        STOPS[stop](run)
        run.communicate(timeout=480)
        wait_until(lambda: not alive(folder, token), f"the end of {alive(folder, token)}", timeout_s=15)
    finally:
        kill_all(folder, token)


def kill_all(folder: Path, token: str) -> None:
    for process in psutil.process_iter(["cmdline"]):
        in_file = process.pid in [int(file.read_text()) for file in folder.glob("*.pid")]
        if in_file or token in (process.info["cmdline"] or []):
            process.kill()
