"""A training on a fake slice: what a step costs more than in the same two processes started by hand, and how long the
loss of a host keeps it from work.

    python tests/benchmarks/slice_training.py

    step       wall time from the end of one training step to the end of the next, on host 0; the median of each side's
               quietest round counts. Rounds alternate
    recovery   seconds from `kill -9` of a host with all its processes to when the function is called on the hosts of
               the next try. What follows is the start of JAX and Levanter itself, which is shown beside it

Ray takes seconds to report a dead host, whose peers are stopped then. Takes about eight minutes on two cores. Exits 1
above a limit.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from job_process import new_job
from ray_cluster import Cluster
from record_fields import fields_of_record
from submitted_jobs import submit
from train_step import make_inputs

from marin_assets.stages.train.train_lm import TrainLmConfig
from marin_resources.hardware.resources import tpu
from marin_resources.ray_tpu.cluster.local.head import free_ports
from marin_resources.step_api.hosts import COORDINATOR, COUNT, INDEX
from marin_resources.wire.config_json import encode

STEP_LIMIT, RECOVERY_LIMIT_S = 1.02, 15.0
ROUNDS, STEPS, WARM_UP_STEPS, KILL_AFTER = 3, 120, 20, 60
KIND = "v4-16"
CODE = """
import json, os, sys, time
from pathlib import Path
from marin_assets.stages.train.train_lm import train_lm
from marin_resources.step_api.hosts import host_index
from marin_resources.wire.config_json import decode


def train(config):
    \"\"\"Train, and tell when the function was called and when each step ended, by the clock of this machine.\"\"\"
    file = open(config["times"], "a", buffering=1) if host_index() == 0 else None
    if file:
        print("called", time.monotonic(), file=file)
        import levanter.tracker

        log = levanter.tracker.log

        def log_with_time(metrics, **arguments):
            log(metrics, **arguments)
            if "throughput/loading_time" in metrics:
                print("step", time.monotonic(), file=file)

        levanter.tracker.log = log_with_time
    return train_lm(decode(config["train"]))


if __name__ == "__main__":
    train(json.loads(sys.argv[1]))
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as name, Cluster(cpus=2) as cluster:
        folder = Path(name)
        config = replace(make_inputs(name), num_train_steps=STEPS, checkpoint_interval_s=600)
        slices = {label: cluster.add_slice(KIND, label) for label in ("a", "b")}
        sides = {"by hand": by_hand, "on the slice": on_the_slice}
        for label, train in sides.items():  # compiles
            train(cluster, folder / f"{label} warm-up", config)
        steps: dict[str, list[float]] = {label: [] for label in sides}
        for number in range(ROUNDS):
            for label in sides if number % 2 == 0 else reversed(sides):
                times = sides[label](cluster, folder / f"{label} {number}", config)
                steps[label].append(statistics.median(step_times(times)))
        recovery_s, restart_s = recovery(cluster, slices, folder / "recovery", config)
    return report(steps, recovery_s, restart_s)


def by_hand(cluster: Cluster, folder: Path, config: TrainLmConfig) -> list[tuple[str, float]]:
    """Two processes with one jax.distributed job."""
    folder.mkdir(parents=True)
    code, times = folder / "train.py", folder / "times"
    code.write_text(CODE)
    given = json.dumps({"times": str(times), "train": encode(replace(config, output_path=str(folder / "out")))})
    address = f"127.0.0.1:{free_ports(1)[0]}"
    processes = [
        subprocess.Popen(
            [sys.executable, str(code), given],
            env={
                **os.environ,
                "JAX_PLATFORMS": "cpu",
                "OMP_NUM_THREADS": "1",
                INDEX: str(index),
                COUNT: "2",
                COORDINATOR: address,
            },
            stderr=subprocess.DEVNULL,
        )
        for index in (0, 1)
    ]
    assert [process.wait() for process in processes] == [0, 0]
    return read_times(times)


def on_the_slice(cluster: Cluster, folder: Path, config: TrainLmConfig) -> list[tuple[str, float]]:
    job = submit_training(cluster, folder, config)
    while not job.info().status.is_terminal:
        time.sleep(1)
    assert fields_of_record(job.job.output_path) is not None, job.logs()
    return read_times(folder / "times")


def submit_training(cluster: Cluster, folder: Path, config: TrainLmConfig) -> Any:
    folder.mkdir(parents=True)
    output = folder / "prefix/raw/x-abc123"
    given = {"times": str(folder / "times"), "train": encode(replace(config, output_path=str(output)))}
    job = new_job(
        str(folder / "prefix"), folder / "code", CODE, "train", config=given, resources=tpu(KIND), resumable=True
    )
    return submit(cluster, job, cpus=0.1, environ={"JAX_PLATFORMS": "cpu"})


def recovery(cluster: Cluster, slices: dict[str, Any], folder: Path, config: TrainLmConfig) -> tuple[float, float]:
    """Kill a host in the middle. Seconds until the function is called again, and from then to its first step."""
    job = submit_training(cluster, folder, replace(config, checkpoint_interval_s=1))
    times = folder / "times"
    while not times.exists() or len(step_times(read_times(times))) < KILL_AFTER - WARM_UP_STEPS:
        time.sleep(0.2)
    mark = json.loads((folder / "prefix/raw/x-abc123/.marin/attempts/1.json").read_text())
    host = slices[mark["tries"][0]["slices"][0]][1]
    killed_s = time.monotonic()
    cluster.kill_host(host)
    while not job.info().status.is_terminal:
        time.sleep(1)
    record = fields_of_record(job.job.output_path) or {}
    assert [each["cause"] for each in record["tries"]] == ["preempted", None], job.logs()
    after = [(what, at_s) for what, at_s in read_times(times) if at_s > killed_s]
    called_s = next(at_s for what, at_s in after if what == "called")
    first_step_s = next(at_s for what, at_s in after if what == "step" and at_s > called_s)
    return called_s - killed_s, first_step_s - called_s


def read_times(path: Path) -> list[tuple[str, float]]:
    """What happened, and when; without a line that is being written."""
    lines = [line.split() for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [(what, float(at_s)) for what, at_s in lines]


def step_times(times: list[tuple[str, float]]) -> list[float]:
    ends = [at_s for what, at_s in times if what == "step"][WARM_UP_STEPS:]
    return [end - start for start, end in itertools.pairwise(ends)]


def report(steps: dict[str, list[float]], recovery_s: float, restart_s: float) -> int:
    print(f"\nmedian training step, ms, {ROUNDS} rounds of {STEPS - WARM_UP_STEPS} steps\n")
    for label, medians in steps.items():
        print(f"{label:14}{1000 * min(medians):10.2f}    rounds {' '.join(f'{1000 * one:.2f}' for one in medians)}")
    ratio = min(steps["on the slice"]) / min(steps["by hand"])
    ok = ratio <= STEP_LIMIT and recovery_s <= RECOVERY_LIMIT_S
    print(f"\nratio {ratio:.3f}; limit {STEP_LIMIT}")
    print(f"recovery {recovery_s:.1f} s, and the start of JAX to the first step {restart_s:.1f} s")
    print(f"limit {RECOVERY_LIMIT_S:g} s for the first: {'ok' if ok else 'ABOVE'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
