"""The verbs of `marin cluster` know a small step by its own id, though it has no job of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cluster_runs import ONE_STEP, env_for, job_of, read_until, start_run, write_experiment
from jobs_there import JobsThere
from ray_cluster import Cluster
from running import wait_until

Marin = Callable[..., tuple[int, str, str]]


@pytest.mark.long
def test_it_is_listed_shown_and_stopped_and_its_run_says_by_whom(
    marin: Marin, jobs_there: JobsThere, cluster: Cluster, prefix: Path, dagster_home: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    script = write_experiment(tmp_path, gate, source=ONE_STEP, own_job=False)
    run = start_run(script, env_for(prefix, dagster_home, cluster))
    step = job_of(read_until(run, "[toy/b] waiting in process"), "toy/b")

    def row() -> str | None:
        [line] = [line for line in marin("cluster", "jobs")[1].splitlines() if step in line] or [None]
        return line if line and "RUNNING" in line else None

    assert wait_until(row, "the row of the step").split()[:4] == [step, "RUNNING", "toy/b", "1"]
    code, out, _ = marin("cluster", "logs", step)
    assert (code, out.startswith("waiting in process ")) == (0, True)
    code, out, _ = marin("cluster", "stop-job", step, "--reason", "wrong data")
    assert (code, out) == (0, f"Job {step} has ended: STOPPED.\n")
    output, _ = run.communicate(timeout=240)
    assert run.returncode == 1
    assert "wrong data" in output
    assert marin("cluster", "stop-job", step)[0] == 1, "it has ended, and no batch job has it any more"
