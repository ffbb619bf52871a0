"""On a cluster a partition is computed, found, attached to and stopped like any other output."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster_runs import env_for, read_until, start_run
from partition_steps import called
from ray_cluster import Cluster
from running import ROOT, wait_until

KEYS = [f"k{number}" for number in range(6)]
ALL = [f"parts[{key}]" for key in KEYS]
WAITS = "k3"
SCRIPT = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
from partition_steps import part
from marin_assets import executor_main, static

if __name__ == "__main__":
    executor_main([part("parts", static(*{keys!r}), Path({calls!r}), gate={gate!r}, waiting=({waits!r},))])
"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    gate = tmp_path / "gate"
    gate.touch()
    return gate


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls.txt"


@pytest.fixture
def start(
    tmp_path: Path, prefix: Path, dagster_home: Path, cluster: Cluster, gate: Path, calls: Path
) -> Callable[..., subprocess.Popen[str]]:
    """Starts the experiment, by default in the deployment of `dagster_home`."""
    script = tmp_path / "experiment.py"
    support = str(ROOT / "tests" / "support")
    script.write_text(SCRIPT.format(support=support, keys=KEYS, calls=str(calls), gate=str(gate), waits=WAITS))
    env = env_for(prefix, dagster_home, cluster)
    return lambda home=dagster_home: start_run(script, {**env, "DAGSTER_HOME": str(home)})


def statuses(prefix: Path) -> dict[str, str]:
    return {file.parent.name: file.read_text() for file in prefix.glob("parts/parts-*/*/.executor_status")}


def all_but_one_are_complete(prefix: Path, calls: Path) -> bool:
    return list(statuses(prefix).values()).count("SUCCESS") == 5 and f"parts[{WAITS}]" in called(calls)


@pytest.mark.long
def test_a_killed_run_leaves_its_partitions_and_the_next_one_attaches_to_them(
    start: Callable[..., subprocess.Popen[str]], prefix: Path, gate: Path, calls: Path
) -> None:
    first = start()
    wait_until(lambda: all_but_one_are_complete(prefix, calls), "five partitions, and the one that waits")
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    second = start()
    shown = read_until(second, f"parts/parts[{WAITS}]: attached to cluster job")
    assert "5 of 6 partitions reused" in shown
    gate.unlink()
    rest, _ = second.communicate(timeout=480)
    assert second.returncode == 0, rest
    assert called(calls) == ALL


@pytest.mark.long
def test_two_deployments_share_the_partitions_under_way(
    start: Callable[..., subprocess.Popen[str]], prefix: Path, gate: Path, calls: Path, tmp_path: Path
) -> None:
    runs = [start(tmp_path / "one"), start(tmp_path / "two")]
    wait_until(lambda: all_but_one_are_complete(prefix, calls), "five partitions, and the one that waits")
    gate.unlink()
    for run in runs:
        output, _ = run.communicate(timeout=480)
        assert run.returncode == 0, output
    assert called(calls) == ALL


@pytest.mark.long
def test_ctrl_c_stops_the_partitions_that_are_not_complete(
    start: Callable[..., subprocess.Popen[str]], prefix: Path, gate: Path, calls: Path
) -> None:
    run = start()
    wait_until(lambda: all_but_one_are_complete(prefix, calls), "five partitions, and the one that waits")
    os.killpg(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=480)
    assert run.returncode == 130, output
    assert "Traceback" not in output
    stopped = {key: "FAILED" if key == WAITS else "SUCCESS" for key in KEYS}
    wait_until(lambda: statuses(prefix) == stopped, "the stop to be recorded")
    gate.unlink()
    again = start()
    output, _ = again.communicate(timeout=480)
    assert again.returncode == 0, output
    assert called(calls) == sorted([*ALL, f"parts[{WAITS}]"])


@pytest.mark.long
def test_a_redeployment_leaves_the_partitions_under_way(
    start: Callable[..., subprocess.Popen[str]], prefix: Path, gate: Path, calls: Path
) -> None:
    run = start()
    wait_until(lambda: all_but_one_are_complete(prefix, calls), "five partitions, and the one that waits")
    os.kill(run.pid, signal.SIGTERM)
    output, _ = run.communicate(timeout=480)
    assert "this run detaches from parts/parts, and the cluster keeps computing" in output
    assert "The run left step 'parts/parts': " in output
    assert " of 6 partitions are complete. " in output
    assert f"Step 'parts/parts[{WAITS}]': its cluster job parts-parts-{WAITS}-" in output
    assert "Traceback" not in output
    assert statuses(prefix)[WAITS] == "RUNNING"
    gate.unlink()
    wait_until(lambda: statuses(prefix)[WAITS] == "SUCCESS", "the partition to end by itself")
    assert called(calls) == ALL
