"""`marin run --launch` of partitions: the daemon of the deployment makes those that are left, inputs first, once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from dagster_processes import dagster_processes
from running import ROOT, wait_until

EXPERIMENT = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
from partition_steps import part
from marin_assets import static

CALLS = Path({calls!r})

def steps():
    keys = static("k0", "k1", "k2", "k3")
    source = part("source", None, CALLS)
    parted = part("parted", keys, CALLS, per_run=2, reads=source)
    return [parted, part("below", keys, CALLS, reads=parted)]
"""
LOCATION = """
import sys
sys.path.insert(0, {checkout!r})
from marin_assets.definitions import defs
"""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_daemon_makes_the_partitions_that_are_left(tmp_path: Path, prefix: Path, dagster_home: Path) -> None:
    calls, checkout = tmp_path / "calls.txt", tmp_path / "checkout"
    for name in ("marin_assets", "marin_resources", "marin_sensors"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, checkout)
    experiment = EXPERIMENT.format(support=str(ROOT / "tests/support"), calls=str(calls))
    (checkout / "marin_assets/experiments/parted.py").write_text(experiment)
    (location := tmp_path / "location.py").write_text(LOCATION.format(checkout=str(checkout)))
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(dagster_home), "PYTHONPATH": str(checkout)}

    def marin(*words: str) -> str:
        command = [sys.executable, "-m", "marin_assets.cli", *words]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, cwd=checkout)
        assert done.returncode == 0, done.stderr
        return done.stdout

    marin("run", "parted", "+parts/parted", "--partition", "k1")
    assert Counter(calls.read_text().split()) == {"source[all]": 1, "parted[k1]": 1}
    launched = marin("run", "parted", "--launch").removeprefix("backfill: ").strip()
    with dagster_processes(location, tmp_path, env) as dagster, dg.DagsterInstance.get() as instance:

        def has_ended() -> bool:
            found = instance.get_backfill(launched)
            return found is not None and found.status is not BulkActionStatus.REQUESTED

        wait_until(has_ended, "the launched backfill to end", timeout_s=1200)
        found = instance.get_backfill(launched)
        assert found is not None
        assert found.status is BulkActionStatus.COMPLETED_SUCCESS, dagster.log()
        runs = instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": launched}))
    keys = ("k0", "k1", "k2", "k3")
    assert Counter(calls.read_text().split()) == {
        "source[all]": 1,
        **{f"{name}[{key}]": 1 for name in ("parted", "below") for key in keys},
    }
    assert {run.status for run in runs} == {dg.DagsterRunStatus.SUCCESS}
    assert len(runs) >= 2, "two keys a run"
    assert "to run" not in marin("plan", "parted").splitlines()[-1]
