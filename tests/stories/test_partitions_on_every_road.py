"""The ways to make partitions: the command line, a script, also one that is killed, and a backfill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cluster_runs import read_until
from dagster_dev import dagster_dev
from partition_steps import called
from running import ROOT, WORKSPACE, start_script, wait_until

DAGSTER = str(Path(sys.executable).with_name("dagster"))
STEPS = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
from partition_steps import part
from marin_assets import executor_main, static

KEYS = static("k0", "k1", "k2", "k3", "k4", "k5")
CALLS = Path({calls!r})
one_run = part("one_run", KEYS, CALLS, gate={gate!r}, waiting=("k3",))
own_runs = part("own_runs", KEYS, CALLS, per_run=2)
"""
LOCATION = """
from running import definitions_of
defs = definitions_of([one_run, own_runs])
"""
SCRIPT = """
if __name__ == "__main__":
    executor_main([one_run])
"""


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls.txt"


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Absent: no partition waits."""
    return tmp_path / "gate"


@pytest.fixture
def env(prefix: Path, dagster_home: Path) -> dict[str, str]:
    return {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(dagster_home)}


def write(folder: Path, name: str, end: str, calls: Path, gate: Path) -> Path:
    support = str(ROOT / "tests" / "support")
    file = folder / name
    file.write_text(STEPS.format(support=support, calls=str(calls), gate=str(gate)) + end)
    return file


def materialize(location: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [DAGSTER, "asset", "materialize", "-f", str(location), *words]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=480, check=False)


def names(step: str, keys: Sequence[int]) -> list[str]:
    return [f"{step}[k{key}]" for key in keys]


@pytest.mark.long
def test_dagster_asset_materialize_makes_the_partitions_that_are_missing(
    tmp_path: Path, env: dict[str, str], calls: Path, gate: Path
) -> None:
    location = write(tmp_path, "location.py", LOCATION, calls, gate)
    one = materialize(location, env, "--select", "parts/one_run", "--partition", "k1")
    assert one.returncode == 0, one.stderr
    assert called(calls) == names("one_run", [1])
    several = materialize(location, env, "--select", "parts/one_run", "--partition-range", "k0...k2")
    assert several.returncode == 0, several.stderr
    assert called(calls) == names("one_run", [0, 1, 2])


@pytest.mark.long
def test_a_script_that_is_killed_goes_on_with_what_is_missing(
    tmp_path: Path, env: dict[str, str], calls: Path, gate: Path, prefix: Path
) -> None:
    gate.touch()
    script = write(tmp_path, "experiment.py", SCRIPT, calls, gate)
    run = start_script(script, env=env)
    wait_until(lambda: len(list(prefix.glob("parts/one_run-*/k[01245]/value.txt"))) == 5, "all but one partition")
    done = lambda: [f for f in prefix.glob("parts/one_run-*/*/.executor_status") if f.read_text() == "SUCCESS"]  # noqa: E731
    wait_until(lambda: len(done()) == 5, "five of them to be complete")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    again = start_script(script, env=env)
    shown = read_until(again, "parts/one_run: 5 of 6 partitions reused")
    gate.unlink()
    output, _ = again.communicate(timeout=480)
    assert again.returncode == 0, shown + output
    made = called(calls)  # the worker of k3 may outlive the run for a moment, and complete it
    assert sorted(set(made)) == names("one_run", range(6))
    assert [name for name in made if name != "one_run[k3]"] == names("one_run", [0, 1, 2, 4, 5])


@pytest.mark.long
def test_ctrl_c_stops_the_partition_that_waits(
    tmp_path: Path, env: dict[str, str], calls: Path, gate: Path, prefix: Path
) -> None:
    gate.touch()
    run = start_script(write(tmp_path, "experiment.py", SCRIPT, calls, gate), env=env)
    statuses = lambda: {f.parent.name: f.read_text() for f in prefix.glob("parts/one_run-*/*/.executor_status")}  # noqa: E731
    wait_until(lambda: list(statuses().values()).count("SUCCESS") == 5, "all but one partition")
    wait_until(lambda: "one_run[k3]" in called(calls), "the partition that waits")
    os.killpg(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=480)
    assert run.returncode == 130, output
    assert "Traceback" not in output
    assert statuses() == {f"k{n}": "FAILED" if n == 3 else "SUCCESS" for n in range(6)}


@pytest.mark.long
@pytest.mark.parametrize("step", ["one_run", "own_runs"])
def test_a_backfill_makes_each_partition_once_and_a_second_one_none(
    tmp_path: Path, env: dict[str, str], calls: Path, gate: Path, step: str
) -> None:
    write(tmp_path, "location.py", LOCATION, calls, gate)
    workspace = tmp_path / "workspace.yaml"
    workspace.write_text(WORKSPACE.format(folder=str(tmp_path)))
    with dagster_dev(workspace, tmp_path / "dev.log", env) as dev:
        for _ in range(2):
            backfill = dev.backfill(f"parts/{step}", [f"k{n}" for n in range(6)])
            wait_until(lambda: dev.backfill_status(backfill).startswith("COMPLETED"), "the backfill", timeout_s=480)  # noqa: B023
            assert dev.backfill_status(backfill) == "COMPLETED_SUCCESS"
            assert called(calls) == names(step, range(6))
            assert dev.partitions(f"parts/{step}") == {"materialized": 6, "failed": 0}


def test_a_key_that_is_not_there_is_one_sentence(tmp_path: Path, env: dict[str, str], calls: Path, gate: Path) -> None:
    script = write(tmp_path, "experiment.py", SCRIPT, calls, gate)
    for words, sentence in (
        (["--partition", "k9"], "Step 'parts/one_run': There is no partition 'k9', expected one of"),
        (["--partition-range", "k1"], "--partition-range 'k1' is not a range. Expected FIRST...LAST."),
        (["--partition-range", "k3...k1"], "ends before it begins."),
        (["--partition", "k1", "--partition-range", "k1...k2"], "expected one of them."),
    ):
        ended = start_script(script, *words, "--dry-run", env=env)
        output, _ = ended.communicate(timeout=480)
        assert (ended.returncode, sentence in output) == (2, True), output
