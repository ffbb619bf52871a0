"""What it costs that a step is a job of ours, against `ray job submit` of a script that does `ray.init()` and calls the
same function, on one loopback cluster.

    python tests/benchmarks/job_latency.py [ROUNDS]

    latency    seconds from submission to the function's first line
    overhead   seconds from submission to when whoever waits knows that it has ended, less those of the function

Ours is submitted and waited for by the back end of a run, its process being up already, as a Dagster run's is;
`ray job submit` is a command, whose own start counts for it. So that of Ray's client library, in a process that is up,
is shown too. Rounds alternate; medians count. The first round, which ships the code, is told apart. Exits 1 beyond a
limit. Takes three minutes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from ray_cluster import Cluster
from sides import stopwatch_step

from marin_resources.configuration.settings import project_root

LIMIT = 1.2
"""Ours over `ray job submit`'s."""
SCRIPT = """
import sys
sys.path.insert(0, "tests")
import ray
ray.init()
from benchmarks.sides.stopwatch import StopwatchConfig, stopwatch
stopwatch(StopwatchConfig(output_path=sys.argv[1]))
"""


@dataclass(frozen=True)
class Times:
    latency_s: float
    overhead_s: float


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sides = {"a step": [], "ray job submit": [], "Ray's client": []}
    with Cluster(cpus=2) as cluster, tempfile.TemporaryDirectory() as folder:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=cluster.token_path)
        script = Path(project_root(), "tests", "benchmarks", "sides", f"submitted_{os.getpid()}.py")
        script.write_text(SCRIPT)
        try:
            for number in range(rounds + 1):
                told = [measure(cluster, script, folder) for measure in (our_step, by_command, by_client)]
                if number == 0:
                    print("first round, which ships the code:", *told)
                    continue
                for side, times in zip(sides.values(), told, strict=True):
                    side.append(times)
        finally:
            script.unlink()
    return report(sides)


def our_step(cluster: Cluster, script: Path, folder: str) -> Times:
    task = stopwatch_step.new_task(folder, own_job=True)
    return measured(task.path, lambda: stopwatch_step.compute(cluster, task))


def by_command(cluster: Cluster, script: Path, folder: str) -> Times:
    path = tempfile.mkdtemp(dir=folder)
    ray = Path(sys.executable).with_name("ray")
    told = ["--address", cluster.address, "--working-dir", str(project_root())]
    words = [ray, "job", "submit", *told, "--", sys.executable, f"tests/benchmarks/sides/{script.name}", path]
    return measured(path, lambda: subprocess.run(words, check=True, capture_output=True))


def by_client(cluster: Cluster, script: Path, folder: str) -> Times:
    from ray.job_submission import JobSubmissionClient

    client = JobSubmissionClient(cluster.address)
    path = tempfile.mkdtemp(dir=folder)

    def submit_and_wait() -> None:
        entrypoint = f"{sys.executable} tests/benchmarks/sides/{script.name} {path}"
        job = client.submit_job(entrypoint=entrypoint, runtime_env={"working_dir": str(project_root())})
        while not client.get_job_status(job).is_terminal():
            time.sleep(0.1)
        assert client.get_job_status(job) == "SUCCEEDED", client.get_job_logs(job)

    return measured(path, submit_and_wait)


def measured(path: str, call: object) -> Times:
    began_s = time.time()
    call()  # type: ignore[operator]
    ended_s = time.time()
    told = json.loads(Path(path, "times.json").read_text())
    spent_s = told["last_line"] - told["first_line"]
    return Times(told["first_line"] - began_s, ended_s - began_s - spent_s)


def report(sides: dict[str, list[Times]]) -> int:
    latency = {side: statistics.median(times.latency_s for times in told) for side, told in sides.items()}
    overhead = {side: statistics.median(times.overhead_s for times in told) for side, told in sides.items()}
    print(f"{'seconds':10} {'a step':>8} {'ray job submit':>15} {'ratio':>7} {'limit':>6} {'client':>8} {'ratio':>7}")
    worst = 0.0
    for what, found in (("latency", latency), ("overhead", overhead)):
        ours, command, client = (found[side] for side in sides)
        worst = max(worst, ours / command)
        print(
            f"{what:10} {ours:8.2f} {command:15.2f} {ours / command:7.2f} {LIMIT:6} {client:8.2f} {ours / client:7.2f}"
        )
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    raise SystemExit(main())
