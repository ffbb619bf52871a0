"""`kill -9` at any moment, then the same command: what was complete is reused, the rest is made, nothing twice."""

import os
import signal
from pathlib import Path

import pytest
from running import alive, logged, start_script, wait_until
from toy_steps import calls

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import toy_steps
from toy_steps import toy
from marin_assets import executor_main

a = toy("a")
b = toy("b", toy_steps.wait_at_gate, reads=a, gate={gate!r})
c = toy("c", reads=b)
executor_main([c])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    gate = tmp_path / "gate"
    gate.touch()
    script = tmp_path / "experiment.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1] / "support"), gate=str(gate)))
    return script


@pytest.fixture
def env(prefix: Path, dagster_home: Path) -> dict[str, str]:
    return {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(dagster_home)}


@pytest.mark.long
def test_a_killed_run_is_gone_on_with(script: Path, prefix: Path, env: dict[str, str], tmp_path: Path) -> None:
    first = start_script(script, env=env)
    text = wait_until(logged(prefix, "toy/b", "waiting in process", by=first), "the second step")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    worker = int(text.split()[-1])
    wait_until(lambda: not alive(worker), "Ray to end the worker of a run that is gone", timeout_s=30)
    (tmp_path / "gate").unlink()
    second = start_script(script, env=env)
    output, _ = second.communicate(timeout=480)
    assert second.returncode == 0, output
    assert "2 computed, 1 reused, 0 failed" in output
    assert [name.split("-")[0] for name in calls(prefix)] == ["a", "b", "b", "c"]


@pytest.mark.long
def test_ctrl_c_stops_the_compute_and_says_so(script: Path, prefix: Path, env: dict[str, str]) -> None:
    run = start_script(script, env=env)
    text = wait_until(logged(prefix, "toy/b", "waiting in process", by=run), "the second step")
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to the whole group
    worker = int(text.split()[-1])
    wait_until(lambda: not alive(worker), "the worker to be gone", timeout_s=5)
    output, _ = run.communicate(timeout=480)
    assert run.returncode == 130
    assert "Interrupted by Ctrl-C: the compute of toy/b is being stopped." in output
    assert "Traceback" not in output


@pytest.mark.long
def test_two_runs_at_once_do_the_work_once(script: Path, prefix: Path, env: dict[str, str], tmp_path: Path) -> None:
    first = start_script(script, env=env)
    wait_until(logged(prefix, "toy/b", "waiting in process", by=first), "the second step")
    second = start_script(script, env={**env, "PYTHONUNBUFFERED": "1"})
    assert second.stdout is not None
    lines = []
    while "waiting, as it is being computed by process" not in (lines or [""])[-1]:
        lines.append(second.stdout.readline())
        assert lines[-1], "".join(lines)
    (tmp_path / "gate").unlink()
    for run in (first, second):
        output, _ = run.communicate(timeout=480)
        assert run.returncode == 0, output
    assert sorted(name.split("-")[0] for name in calls(prefix)) == ["a", "b", "c"]
