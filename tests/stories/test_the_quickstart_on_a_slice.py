"""The quickstart with its training on both hosts of a fake v4-16 slice: the losses of one process, at every step."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from quickstart_runs import paths_below, require_complete
from ray_cluster import Cluster
from running import ROOT, wait_until

from marin_assets.experiments.quickstart import steps
from marin_assets.stages.train.metrics import read_metrics
from marin_resources.ray_tpu.cluster.local import local_cluster
from marin_resources.storage.output.record import read_record

KIND = "v4-16"
MODEL, REPORT = "checkpoints/quickstart-tiny", "report/quickstart-tiny"


@pytest.fixture
def sliced() -> Iterator[Cluster]:
    """A cluster of this machine with two fake slices, as `marin cluster local up --fake v4-16,v4-16` starts it."""
    with Cluster(cpus=2) as cluster:
        local_cluster.up(fake=[KIND, KIND], state=cluster.state)
        yield cluster


def quickstart(cluster: Cluster, prefix: Path, dagster_home: Path) -> subprocess.Popen[str]:
    """As a user starts it: two variables name the cluster, as they would a real one."""
    env = {
        **os.environ,
        "MARIN_CLUSTER": "local",
        "MARIN_STATE_DIR": str(cluster.state),
        "MARIN_PREFIX": str(prefix),
        "DAGSTER_HOME": str(dagster_home),
    }
    command = [sys.executable, "-m", "marin_assets.experiments.quickstart", "--scale", "tiny", "--tpu", KIND]
    return subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)


def losses(path: str) -> dict[int, float]:
    rows = read_metrics(f"{path}/metrics.jsonl")
    return {row["step"]: row["train/loss"] for row in rows if "train/loss" in row}


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_the_losses_are_those_of_one_process_also_when_the_slice_is_taken_away_after_a_notice(
    tiny_quickstart: Any, sliced: Cluster, tmp_path: Path, dagster_home: Path
) -> None:
    made = steps("tiny")
    here = paths_below(str(tiny_quickstart.prefix), made)
    there = paths_below(str(tmp_path / "prefix"), made)
    run = quickstart(sliced, tmp_path / "prefix", dagster_home)
    metrics = Path(there[MODEL], "metrics.jsonl")
    wait_until(lambda: metrics.exists() and len(losses(there[MODEL])) > 2, "the training", 1200)
    mark = Path(there[MODEL], ".marin/attempts/1.json").read_text()
    local_cluster.preempt("fake-v4-16-0" if "fake-v4-16-0" in mark else "fake-v4-16-1", notice_s=60, state=sliced.state)
    _, said = run.communicate()
    assert run.returncode == 0, said[-5000:]
    assert "22 computed, 0 reused, 0 failed" in said
    require_complete(there)
    assert losses(there[MODEL]) == pytest.approx(losses(here[MODEL]), abs=1e-4)
    assert len(losses(there[MODEL])) == len(losses(here[MODEL])) > 15
    record = read_record(there[MODEL]) or {}
    first, last = record["tries"]
    assert (first["cause"], first["error"], last["cause"]) == ("preempted", "its node is being drained", None)
    assert last["resumed_from"] == first["saved_step"]
    assert len(last["hosts"]) == 2
    assert 0 < record["ledger"]["goodput"] < 1
    assert 'aria-label="Tries by time"' in Path(there[REPORT], "report.html").read_text()
