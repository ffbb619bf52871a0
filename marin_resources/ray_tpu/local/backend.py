"""The local back end: Ray in the run's own process, a step is a Ray task.

Ray starts with the first task, or ahead of it (local_ray.py); a run that reuses everything never starts it. A step
whose extras load JAX or torch gets a process of its own; the others share a pool.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from marin_resources.hardware.resources import Resources, slice_type
from marin_resources.ray_tpu.environment.devices import device_variables
from marin_resources.ray_tpu.environment.extras import check_environment, met_here, missing_in_environment
from marin_resources.ray_tpu.environment.fresh_process import needs_fresh_process
from marin_resources.ray_tpu.environment.packages import missing_python_packages
from marin_resources.ray_tpu.local.local_ray import ray_of_process
from marin_resources.ray_tpu.log.attempt_log import LogFollower
from marin_resources.ray_tpu.log.spool import upload_spool
from marin_resources.ray_tpu.ray_options import (
    RayGoneError,
    UnmeetableError,
    alive_nodes,
    missing_on_node,
    ray_options,
    refuse_unmeetable,
)
from marin_resources.ray_tpu.requirements import MissingByStep, MissingRequirement, Requirements, merge_missing
from marin_resources.ray_tpu.site import PlacementRequest, Site
from marin_resources.ray_tpu.worker.recorded_failure import recorded_failure
from marin_resources.ray_tpu.worker.run_task import run_task
from marin_resources.ray_tpu.worker.task_error import outcome_of_error
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.notes.job_notes import first_free_attempt
from marin_resources.types.output import Holder
from marin_resources.wire.config_json import references_in
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.reference import add_import_paths, import_paths
from marin_resources.wire.task import Task

LOG_POLL_S = 0.25
STOP_TIMEOUT_S = 4.0

RAY_DIED = Outcome(end=End.LOST, error="the Ray of this run has died, and was started again")

SEVERAL_HOSTS = MissingRequirement(
    verb="requests",
    what="a slice of several hosts, and a Ray of the run's own has one",
    remedy="Run it on a cluster: set MARIN_CLUSTER, or rehearse it with marin cluster local up --fake.",
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Handle:
    task: Task
    reference: Any
    """Ray's ObjectRef of the outcome."""
    ray_number: int
    """The number of the Ray that it was submitted to (`OwnRay.number`)."""
    job: str | None = None

    def describe(self) -> str:
        return ""


class LocalBackend:
    """Runs tasks on this machine. One instance per process; `shutdown()` ends Ray and all its tasks."""

    def __init__(self, cpus: int | None = None) -> None:
        self._all_cpus = cpus or os.cpu_count() or 1
        self._lock = threading.Lock()
        self._handles: dict[str, Handle] = {}
        self._own_ray = ray_of_process(self._all_cpus)

    async def attempt_for(self, path: str) -> int:
        await asyncio.to_thread(self._own_ray.begin)  # it starts while the task is prepared
        return await asyncio.to_thread(first_free_attempt, path)

    async def attach(self, path: str, holder: Holder) -> Handle | None:
        """None: a run waits for another process's task by its lease."""
        return None

    def satisfies(self, required: Requirements) -> bool:
        return met_here(required, self._all_cpus)

    def missing_by_step(self, required: Sequence[Requirements]) -> MissingByStep:
        several = {r.step: (SEVERAL_HOSTS,) for r in required if _hosts(r.resources) > 1}
        of_ray = [r for r in required if r.step not in several and self._asks_ray(r.resources)]
        nodes = alive_nodes(self._own_ray.started()) if of_ray else []
        short = {r.step: (requirement,) for r in of_ray if (requirement := missing_on_node(r.resources, nodes))}
        return merge_missing(missing_in_environment(required), missing_python_packages(required), several, short)

    def _asks_ray(self, resources: Resources) -> bool:
        """Whether Ray alone knows if this machine has the resources: any other than its CPUs."""
        return resources != Resources(cpus=min(resources.cpus, self._all_cpus))

    @property
    def prefixes(self) -> Sequence[str]:
        return ()

    async def site(self, needs: Callable[[], PlacementRequest], path: str) -> Site | None:
        return None

    def check(self, task: Task) -> None:
        check_environment(Requirements.of(task))

    async def submit(
        self,
        task: Task,
        on_job: Callable[[str], None] = lambda job: None,
        should_detach: Callable[[], bool] = lambda: False,
    ) -> Handle:
        try:
            return await asyncio.to_thread(self._submit, task)
        except asyncio.CancelledError:  # the thread waits for Ray, and the run for the thread
            self._own_ray.stop_starting()
            raise

    def _submit(self, task: Task) -> Handle:
        with self._lock:
            submitted = self._handles.get(task.id)
            if submitted is not None:
                return submitted
            if self._own_ray.is_dead():
                self._own_ray.start_again(self._own_ray.number)
            ray = self._own_ray.started()
            nodes = alive_nodes(ray)
            if not nodes:  # one that was not started here
                raise RayGoneError(
                    f"Step {task.output.label!r} cannot run: the Ray of this run has died. Run again; complete outputs "
                    "are reused."
                )
            if _hosts(task.resources) > 1:
                raise UnmeetableError(f"Step {task.output.label!r} {SEVERAL_HOSTS.phrase}")
            refuse_unmeetable(f"Step {task.output.label!r}", task.resources, nodes)
            fresh = needs_fresh_process(task)
            options = {**ray_options(task.resources), "max_retries": 0, "name": task.id}
            paths = import_paths({task.fn, *references_in(task.config)})
            function = ray.remote(max_calls=1 if fresh else 0)(_run_task)
            reference = function.options(**options).remote(task.to_dict(), paths)
            handle = Handle(task, reference, self._own_ray.number)
            self._handles[task.id] = handle
            return handle

    async def wait(self, handle: Handle, on_log: Callable[[str], None]) -> Outcome:
        follower = LogFollower(log_path(handle.task.path, handle.task.attempt), on_log)
        future = asyncio.wrap_future(handle.reference.future())
        future.add_done_callback(_retrieve_error)
        try:
            while not future.done() and not self._is_lost(handle):
                await asyncio.wait([future], timeout=LOG_POLL_S)
                await asyncio.to_thread(follower.poll)
            if not future.done():  # Ray never ends it; its worker is killed here, as the next attempt writes there
                await asyncio.to_thread(self._own_ray.start_again, handle.ray_number)
            outcome = await asyncio.to_thread(_outcome_of, handle.task, future)  # which appends a crash to the log
            await asyncio.to_thread(follower.finish)
            await asyncio.to_thread(upload_spool, follower.path)  # in case the worker was killed
            return outcome
        finally:
            self._handles.pop(handle.task.id, None)

    def _is_lost(self, handle: Handle) -> bool:
        """Whether the Ray of the task has died."""
        return handle.ray_number != self._own_ray.number or self._own_ray.is_dead()

    async def detach(self, handle: Handle, *, force: bool) -> str | None:
        """None: Ray ends with this process."""
        return None

    async def stop(self, handle: Handle, reason: str) -> None:
        await asyncio.to_thread(self._stop, handle, reason)

    def _stop(self, handle: Handle, reason: str) -> None:
        import ray  # late, for its weight

        log.info("stopping %s: %s", handle.task.id, reason)
        if self._is_lost(handle):
            self._own_ray.start_again(handle.ray_number)
            self._handles.pop(handle.task.id, None)
            return
        ray.cancel(handle.reference, force=True, recursive=True)
        ray.wait([handle.reference], timeout=STOP_TIMEOUT_S, fetch_local=False)
        upload_spool(log_path(handle.task.path, handle.task.attempt))
        self._handles.pop(handle.task.id, None)

    def shutdown(self) -> None:
        """End Ray if this process started it."""
        with self._lock:
            self._own_ray.shutdown()


def _hosts(resources: Resources) -> int:
    return resources.slices * slice_type(resources.tpu.kind).hosts if resources.tpu else 1


def _outcome_of(task: Task, future: asyncio.Future[Any]) -> Outcome:
    """The outcome of a task that has ended, or whose Ray has died."""
    if not future.done():
        return recorded_failure(task.path, task.attempt) or RAY_DIED
    error = future.exception()
    return outcome_of_error(task, error) if error else Outcome.from_dict(future.result())


def _retrieve_error(future: asyncio.Future[Any]) -> None:
    """Mark the error as retrieved: a stopped task's is expected, and asyncio would log it."""
    if not future.cancelled():
        future.exception()


def _run_task(task: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    add_import_paths(paths)
    os.environ.update(device_variables(Task.from_dict(task).resources))  # with devices the process is its own
    return run_task(task)
