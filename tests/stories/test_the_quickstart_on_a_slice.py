"""The quickstart with its training on both hosts of a fake v4-16 slice: the losses of one process, at every step."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from quickstart_runs import paths_below, require_complete
from ray_cluster import Cluster
from record_fields import fields_of_record
from running import ROOT, wait_until

from marin_assets.experiments.quickstart import steps
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_resources.ray_tpu.cluster.local import local_cluster
from marin_resources.ray_tpu.cluster.local.state import read_cluster, state_folder

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


@contextmanager
def paused(output_path: str) -> Iterator[list[psutil.Process]]:
    """The processes of a step on its hosts, which stand still until they are resumed, in the block at the longest."""
    title = f"ray::{Path(output_path).parent.name}/{Path(output_path).name}#1 host "
    processes = [
        each for each in psutil.process_iter(["cmdline"]) if " ".join(each.info["cmdline"] or []).startswith(title)
    ]
    for process in processes:
        process.suspend()
    try:
        yield processes
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def slice_of(hosts: list[psutil.Process], cluster: Cluster) -> str:
    """The fake slice that the processes run on."""
    above = {parent.pid for host in hosts for parent in host.parents()}
    known = read_cluster(state_folder(cluster.state))
    assert known is not None
    [name] = {host.slice for host in known.fake_hosts if host.pid in above}
    return name


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_the_losses_are_those_of_one_process_also_when_the_slice_is_taken_away_after_a_notice(
    tiny_quickstart: Any, sliced: Cluster, tmp_path: Path, dagster_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = steps("tiny")
    here = paths_below(str(tiny_quickstart.prefix), made)
    there = paths_below(str(tmp_path / "prefix"), made)
    run = quickstart(sliced, tmp_path / "prefix", dagster_home)
    metrics = Path(there[MODEL], "metrics.jsonl")
    wait_until(lambda: metrics.exists() and len(losses(there[MODEL])) > 2, "the training", 1200)
    with paused(there[MODEL]) as hosts, ThreadPoolExecutor() as beside:  # or it may end before the notice arrives
        with caplog.at_level(logging.INFO, "marin_resources.ray_tpu.cluster.local"):
            taken = beside.submit(local_cluster.preempt, slice_of(hosts, sliced), notice_s=60, state=sliced.state)
            wait_until(lambda: "are notified; they are killed in 60 s" in caplog.text or taken.done(), "the notice", 60)
        for host in hosts:
            host.resume()
        taken.result()
    _, said = run.communicate()
    assert run.returncode == 0, said[-5000:]
    assert "22 computed, 0 reused, 0 failed" in said
    require_complete(there)
    assert losses(there[MODEL]) == pytest.approx(losses(here[MODEL]), abs=1e-4)
    assert len(losses(there[MODEL])) == len(losses(here[MODEL])) > 15
    record = fields_of_record(there[MODEL]) or {}
    first, last = record["tries"]
    assert (first["cause"], first["error"], last["cause"]) == ("preempted", "its node is being drained", None)
    assert last["resumed_from"] == first["saved_step"]
    assert len(last["hosts"]) == 2
    assert 0 < record["ledger"]["goodput"] < 1
    assert 'aria-label="Tries by time"' in Path(there[REPORT], "report.html").read_text()
