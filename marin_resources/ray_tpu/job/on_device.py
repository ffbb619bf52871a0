"""A step on GPUs or a TPU: one Ray task with all resources of the step, awaited by the job's own process.

In:  the job's note.   Out: the outcome of the worker, which claims, computes and publishes on its node.

The job itself requests few CPUs: a job that waits for resources cannot be stopped, and a Ray task can be cancelled.
The worker prints into the log of its attempt; what it waits for before that is in the job's own log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from marin_resources.ray_tpu.cluster.settings import (
    DEFAULT_START_TIMEOUT_S,
    NODE_TYPES_VARIABLE,
    START_TIMEOUT_VARIABLE,
)
from marin_resources.ray_tpu.cluster.settings_from_env import parse_node_types
from marin_resources.ray_tpu.job.run_step import run_in_task
from marin_resources.ray_tpu.ray_options import UnmeetableError, alive_nodes, ray_options, refuse_unmeetable
from marin_resources.ray_tpu.shards.connection import connect, task_environment
from marin_resources.ray_tpu.shards.job_allocation import RAY_OUTPUT_VARIABLES
from marin_resources.ray_tpu.task_error import outcome_of_error
from marin_resources.storage.output.job_notes import JobNote
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

FIRST_LOG_S, LOG_EVERY_S = 5.0, 60.0
POLL_S = 0.5
STOP_TIMEOUT_S = 2.0
"""Time limit for a cancelled worker to record the stop beside the output. Ray kills the job 3 s after SIGTERM."""
KILL_TIMEOUT_S = 0.5


def run_on_device(note: JobNote) -> Outcome:
    """Run the task on a node with its devices. When this returns or raises, its worker is gone."""
    os.environ.update(RAY_OUTPUT_VARIABLES)
    task, ray = note.task, connect()
    start_timeout_s = float(os.environ.get(START_TIMEOUT_VARIABLE) or DEFAULT_START_TIMEOUT_S)
    options = {**ray_options(task.resources), "runtime_env": task_environment(task.resources.cpus)}
    worker = ray.remote(_work).options(max_retries=0, num_returns="streaming", name=task.id, **options).remote(note)
    try:
        _wait_for_start(ray, worker, task, start_timeout_s)
        print(f"it runs on {ray.get(next(worker))}", flush=True)
        while not ray.wait([worker], timeout=POLL_S)[0]:  # signals are handled between two calls
            continue
        return Outcome.from_dict(ray.get(next(worker)))
    except UnmeetableError as error:
        return Outcome(end=End.FAILED, error=str(error))
    except ray.exceptions.RayError as error:
        return outcome_of_error(task, error)
    finally:
        _stop(ray, worker)


def _wait_for_start(ray: Any, worker: Any, task: Task, start_timeout_s: float) -> None:
    """Return when the worker has started or is lost. Raises UnmeetableError if no node has its resources for long."""
    node_types = parse_node_types(os.environ.get(NODE_TYPES_VARIABLE) or "[]", NODE_TYPES_VARIABLE)
    started_s = fit_s = time.monotonic()
    next_log_s = started_s + FIRST_LOG_S
    while not ray.wait([worker], timeout=POLL_S)[0]:
        now_s = time.monotonic()
        try:
            refuse_unmeetable(f"Step {task.output.label!r}", task.resources, [*alive_nodes(ray), *node_types])
            fit_s = now_s
        except UnmeetableError:
            if now_s - fit_s >= start_timeout_s:
                raise
        if now_s >= next_log_s:
            print(_waiting(ray, task, now_s - started_s), flush=True)
            next_log_s = now_s + LOG_EVERY_S


def _waiting(ray: Any, task: Task, waited_s: float) -> str:
    """Return one line: what the step waits for, and how much of it the cluster has."""
    total, free = ray.cluster_resources(), ray.available_resources()
    names_of_options = {"num_cpus": "CPU", "num_gpus": "GPU"}
    options = ray_options(task.resources)
    names = [names_of_options[key] for key in options if key in names_of_options] + list(options.get("resources", ()))
    has = ", ".join(f"{free.get(name, 0):g} of {total.get(name, 0):g} {name}" for name in names)
    return f"waiting for {task.resources.describe()} for {waited_s:.0f} s; free in the cluster: {has}"


def _stop(ray: Any, worker: Any) -> None:
    """Cancel the worker, which has 2 s to record the stop beside the output, then kill it. Wait until it is gone."""
    ended = [worker.completed()]
    for force, timeout_s in ((False, STOP_TIMEOUT_S), (True, KILL_TIMEOUT_S)):
        if ray.wait(ended, timeout=0, fetch_local=False)[0]:
            return
        ray.cancel(worker, force=force)
        ray.wait(ended, timeout=timeout_s, fetch_local=False)


def _work(note: JobNote) -> Iterator[Any]:
    """Run on the node with the devices. Yield its address, then the outcome."""
    import ray  # late, for its weight

    yield f"node {ray.util.get_node_ip_address()}"
    yield run_in_task(note).to_dict()
