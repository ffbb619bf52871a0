"""What it costs that small steps run on a cluster: the same steps on a cluster's batch job, and on the run's own Ray.

    python tests/benchmarks/small_steps.py [ROUNDS] [CASE …]

    level 100, level 1000   so many steps that do nothing, side by side
    chain 30                30 steps, each reading the one before
    partitions 1000         so many partitions of one step that do nothing
    another's step          seconds until a step of another run begins, which is submitted in the middle of 1,000

Both sides are whole commands, `dagster asset materialize`, in a fresh prefix: a local run starts its Ray, a run on a
cluster starts a batch job. The cluster is on this machine and has its CPUs. Rounds alternate; medians count. Exits 1
beyond a limit. Takes ten minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from ray_cluster import Cluster
from sides import stopwatch_step

from marin_resources.configuration.settings import project_root

LIMITS = {"level 100": 1.5, "level 1000": 1.5, "chain 30": 2.0, "partitions 1000": 1.5}
"""Seconds on the cluster over seconds here."""
ANOTHERS, ANOTHERS_LIMIT_S = "another's step", 5.0
SIDES = Path(__file__).parent / "sides"


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    cases = sys.argv[2:] or [*LIMITS, ANOTHERS]
    with Cluster(cpus=os.cpu_count() or 1) as cluster, tempfile.TemporaryDirectory() as folder:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=cluster.token_path)
        within = [compare(case, rounds, cluster, folder) for case in cases if case != ANOTHERS]
        if ANOTHERS in cases:
            within.append(begin_amid_others(rounds, cluster, folder))
    return 0 if all(within) else 1


def compare(case: str, rounds: int, cluster: Cluster, folder: str) -> bool:
    kind, steps = case.split()
    here, there = [], []
    for _ in range(rounds):
        here.append(materialize(kind, steps, folder, cluster=None))
        there.append(materialize(kind, steps, folder, cluster=cluster))
    ratio = statistics.median(there) / statistics.median(here)
    every = ", ".join(f"{a:.1f}/{b:.1f}" for a, b in zip(there, here, strict=True))
    print(f"{case:15} {ratio:6.2f} times local, limit {LIMITS[case]}   (seconds: {every})", flush=True)
    return ratio <= LIMITS[case]


def materialize(kind: str, steps: str, folder: str, *, cluster: Cluster | None) -> float:
    """Wall seconds of one command."""
    began_s = time.monotonic()
    command = start(kind, steps, folder, cluster=cluster)
    _, errors = command.communicate()
    if command.returncode != 0:
        raise RuntimeError(f"{command.args} ended with {command.returncode}:\n{errors[-3000:]}")
    return time.monotonic() - began_s


def start(kind: str, steps: str, folder: str, *, cluster: Cluster | None, aside: bool = False) -> subprocess.Popen[str]:
    """Start one command in a prefix of its own. Dagster is set up as the checkout sets it up, in a home of its own.

    `aside`: it takes no CPU from the cluster on this machine, as if it ran on another.
    """
    home = Path(folder, "dagster")
    home.mkdir(exist_ok=True)
    shutil.copy(project_root() / ".dagster/dagster.yaml", home)
    environment = {
        **os.environ,
        "NOOP_STEPS": steps,
        "MARIN_PREFIX": f"{folder}/{uuid.uuid4().hex}",
        "DAGSTER_HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(SIDES), str(project_root())]),
        "MARIN_CLUSTER": cluster.address if cluster else "",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    yields = ["nice", "-n", "19"] if aside else []
    dagster = [sys.executable, "-m", "dagster", "asset", "materialize"]
    keys = ["--partition-range", f"k0...k{int(steps) - 1}"] if kind == "partitions" else []
    command = [*yields, *dagster, "-m", "noop_ours", "-a", kind, "--select", "*", *keys]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def begin_amid_others(rounds: int, cluster: Cluster, folder: str) -> bool:
    waited_s = []
    for _ in range(rounds):
        run = start("level", "1000", folder, cluster=cluster, aside=True)
        time.sleep(20)  # in the middle of them
        waited_s.append(begin_one(cluster, folder))
        assert run.poll() is None, "the steps of the others have ended before"
        run.kill()
        run.communicate()
    median_s = statistics.median(waited_s)
    every = ", ".join(f"{each:.1f}" for each in waited_s)
    print(f"{ANOTHERS:15} {median_s:6.1f} s until it begins, limit {ANOTHERS_LIMIT_S} s   ({every})", flush=True)
    return median_s <= ANOTHERS_LIMIT_S


def begin_one(cluster: Cluster, folder: str) -> float:
    """Seconds from the submission of a step to its function's first line."""
    task = stopwatch_step.new_task(folder, own_job=None)
    began_s = time.time()
    stopwatch_step.compute(cluster, task)
    return json.loads(Path(task.path, "times.json").read_text())["first_line"] - began_s


if __name__ == "__main__":
    raise SystemExit(main())
