"""Runs that wait for one job are killed at drawn moments: together they show each line of its log once and in order."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cluster_runs import ONE_STEP, env_for, start_run, write_experiment
from ray_cluster import Cluster
from running import wait_until

KILLS = 20


@pytest.mark.long
@pytest.mark.parametrize("own_job", [True, False], ids=["own job", "small step"])
def test_no_line_is_repeated_or_lost(
    prefix: Path, dagster_home: Path, cluster: Cluster, tmp_path: Path, own_job: bool
) -> None:
    gate, drawn = tmp_path / "gate", random.Random(20261122)
    gate.touch()
    script = write_experiment(tmp_path, gate, "count_at_gate", source=ONE_STEP, own_job=own_job)
    env = env_for(prefix, dagster_home, cluster)
    outputs = Outputs(dagster_home)
    for _ in range(KILLS):
        run, before = start_run(script, env), len(outputs.lines())
        until_it_shows_more(run, outputs, before)
        time.sleep(drawn.uniform(0, 1.5))  # a moment of the run, and not an event
        os.killpg(run.pid, signal.SIGKILL)
        output, _ = run.communicate()
        assert run.returncode == -signal.SIGKILL, output
        outputs.lines()
    last, before = start_run(script, env), len(outputs.lines())
    until_it_shows_more(last, outputs, before)
    gate.unlink()
    output, _ = last.communicate(timeout=480)
    assert last.returncode == 0, output
    [log] = prefix.glob("toy/b-*/.marin/attempts/1.log")
    assert outputs.lines() == log.read_text().splitlines()


def until_it_shows_more(run: subprocess.Popen[str], outputs: Outputs, before: int) -> None:
    wait_until(lambda: len(outputs.lines()) > before or run.poll() is not None, "a new line", timeout_s=300)


class Outputs:
    """The captured outputs of runs that follow one another."""

    def __init__(self, dagster_home: Path) -> None:
        self._home, self._files = dagster_home, list[Path]()

    def lines(self) -> list[str]:
        """The step's lines of all runs so far."""
        found = self._home.glob("storage/*/compute_logs/*.out")
        self._files += [file for file in found if file not in self._files]
        texts = [file.read_text() for file in self._files]
        return [line for text in texts for line in re.findall(r"^\[toy/b\] (.*)\n", text, re.MULTILINE)]
