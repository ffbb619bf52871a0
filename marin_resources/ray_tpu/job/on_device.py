"""A step on GPUs or a TPU: one task of Ray with all that the step asks for, waited for by the job's own process.

In:  the job's note.   Out: the worker's outcome; it claims, computes and publishes on its node.

The job itself asks Ray for little: one that is pending on resources cannot be stopped, and a task of Ray's can. What
the worker prints is in the log of its attempt; what it waits for before stands in the job's own.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from marin_resources.ray_tpu.job.run_step import do_here, place_of
from marin_resources.ray_tpu.ray_options import UnmeetableError, ray_options, refuse_unmeetable
from marin_resources.ray_tpu.shards.connection import connect, task_environment
from marin_resources.ray_tpu.task_error import outcome_of_error
from marin_resources.storage.output.job_notes import JobNote
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

NODE_TIMEOUT_S = 600.0
"""So long a node that has what is asked is waited for, as a cluster that grows takes minutes. For one that has it and
is busy, any time."""
FIRST_WORD_S, EVERY_S = 5.0, 60.0
POLL_S = 0.5
LAST_WORDS_S = 1.2
"""For a worker that is told to stop to say so beside the output. Ray kills the job 3 s after it told it to stop."""
GONE_S = 1.0


def run_on_device(note: JobNote, *, node_timeout_s: float = NODE_TIMEOUT_S) -> Outcome:
    """Run the task where its devices are. When this returns or raises, its worker is gone."""
    task, ray = note.task, connect()
    options = {**ray_options(task.resources), "runtime_env": task_environment(task.resources.cpus)}
    worker = ray.remote(_work).options(max_retries=0, num_returns="streaming", name=task.id, **options).remote(note)
    try:
        _await_start(ray, worker, task, node_timeout_s)
        _say(f"it runs on {ray.get(next(worker))}")
        while not ray.wait([worker], timeout=POLL_S)[0]:  # in between, a signal is heard
            continue
        return Outcome.from_dict(ray.get(next(worker)))
    except UnmeetableError as error:
        return Outcome(end=End.FAILED, error=str(error))
    except ray.exceptions.RayError as error:
        return outcome_of_error(task, error)
    finally:
        _stop(ray, worker)


def _await_start(ray: Any, worker: Any, task: Task, node_timeout_s: float) -> None:
    """Return when the worker has begun, or is lost. Raises UnmeetableError if no node has what it needs for long."""
    began_s = fit_s = time.monotonic()
    word_s = began_s + FIRST_WORD_S
    while not ray.wait([worker], timeout=POLL_S)[0]:
        now_s = time.monotonic()
        try:
            refuse_unmeetable(f"Step {task.output.name!r}", task.resources, _nodes(ray))
            fit_s = now_s
        except UnmeetableError:
            if now_s - fit_s >= node_timeout_s:
                raise
        if now_s >= word_s:
            _say(_waiting(ray, task, now_s - began_s))
            word_s = now_s + EVERY_S


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _nodes(ray: Any) -> list[Mapping[str, float]]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _waiting(ray: Any, task: Task, waited_s: float) -> str:
    """One line: what the step waits for, and what the cluster has of that."""
    there, free = ray.cluster_resources(), ray.available_resources()
    words = {"num_cpus": "CPU", "num_gpus": "GPU"}
    asked = ray_options(task.resources)
    names = [words[key] for key in asked if key in words] + list(asked.get("resources", ()))
    has = ", ".join(f"{free.get(name, 0):g} of {there.get(name, 0):g} {name}" for name in names)
    return f"waiting for {task.resources.describe()} for {waited_s:.0f} s; free in the cluster: {has}"


def _stop(ray: Any, worker: Any) -> None:
    """See to it that the worker is gone; it gets a moment to say so beside the output."""
    ended = [worker.completed()]
    for force, timeout_s in ((False, LAST_WORDS_S), (True, GONE_S)):
        if ray.wait(ended, timeout=0, fetch_local=False)[0]:
            return
        ray.cancel(worker, force=force)
        ray.wait(ended, timeout=timeout_s, fetch_local=False)


def _work(note: JobNote) -> Iterator[Any]:
    """On the node with the devices: first where that is, then the outcome."""
    import ray

    yield f"node {ray.util.get_node_ip_address()}"
    if note.code.get("image_root"):
        os.chdir(note.code["image_root"])  # as the job's own process has; a shipped directory is entered by Ray
    place = dataclasses.replace(place_of(note, time.time()), tee=False)  # this process's stdout is not the job's
    yield do_here(note, place, lent_while_waiting=True).to_dict()
