"""Shards in flight as Ray tasks: in the slots of this process's allocation, and wherever the cluster has free CPUs.

The allocation has slots for as many shards as fit into it. A task in a slot requests no CPU from Ray: its CPU is
reserved already and idle while this process waits. All other tasks request their resources, and wait for ever if
waiting processes reserve all CPUs. So an unstarted task is recalled when a slot is free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.ray_options import ray_options
from marin_resources.ray_tpu.shards.connection import task_environment
from marin_resources.ray_tpu.shards.job_allocation import JobAllocation

CANCEL_TIMEOUT_S = 4.0
QUEUE_DEPTH = 2
"""Tasks in flight for each shard that the cluster can run at once: one that runs and one that waits."""


@dataclass(eq=False)
class _ShardTask:
    index: int
    in_slot: bool
    started: bool
    """Whether it is known to have started, or need not be known."""


class InFlight:
    """The submitted shards. True while any is in flight."""

    def __init__(
        self, ray: Any, run: Callable[..., Any], resources: Resources, allocation: JobAllocation | None
    ) -> None:
        self._ray, self._run = ray, run
        self._slots = allocation.slots(resources) if allocation else 0
        self._capacity = max(1, int(ray.cluster_resources().get("CPU", 1) / resources.cpus))
        common = {"max_retries": 0, **({"runtime_env": task_environment(resources.cpus)} if allocation else {})}
        requested = {**common, **ray_options(resources)}
        self._plain = ray.remote(run).options(**requested)
        self._reporting = ray.remote(_report_start_and_run).options(num_returns="streaming", **requested)
        self._in_slot = ray.remote(run).options(**common, **slot_options(ray, resources))
        self._tasks: dict[Any, _ShardTask] = {}
        """By Ray's handle: the reference of a result, or a generator that first reports the start."""

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def submit(
        self, waiting: deque[int], arguments: Callable[[int], tuple[Any, ...]], discard: Callable[[int], None]
    ) -> None:
        """Submit waiting shards while room is left. Call `discard` for a shard before it is submitted again."""
        while (waiting and self._has_room(in_slot=True)) or self._recall(waiting, discard):
            self._submit_one(waiting.popleft(), arguments, in_slot=True)
        while waiting and self._has_room(in_slot=False):
            self._submit_one(waiting.popleft(), arguments, in_slot=False)

    def wait_for_event(self) -> tuple[int, Any] | None:
        """Wait for an event. Return index and result reference of a shard that ended, None if one has started."""
        [ready], _ = self._ray.wait(list(self._tasks), num_returns=1)
        task = self._tasks[ready]
        reference = ready if isinstance(ready, self._ray.ObjectRef) else next(ready)
        if not task.started and self._succeeded(reference):
            task.started = True
            return None
        del self._tasks[ready]
        return task.index, reference

    def cancel_all(self) -> None:
        """Cancel all tasks, so that no writer outlives its stage."""
        self._cancel(list(self._tasks))
        self._tasks.clear()

    def _has_room(self, *, in_slot: bool) -> bool:
        running = sum(task.in_slot is in_slot for task in self._tasks.values())
        return running < (self._slots if in_slot else QUEUE_DEPTH * self._capacity)

    def _submit_one(self, index: int, arguments: Callable[[int], tuple[Any, ...]], *, in_slot: bool) -> None:
        if in_slot:
            handle = self._in_slot.remote(*arguments(index))
        elif self._slots:
            handle = self._reporting.remote(self._run, *arguments(index))
        else:
            handle = self._plain.remote(*arguments(index))
        self._tasks[handle] = _ShardTask(index, in_slot, started=in_slot or not self._slots)

    def _recall(self, waiting: deque[int], discard: Callable[[int], None]) -> bool:
        """If a slot is free, cancel the unstarted task that was submitted last, and put its shard first in line."""
        unstarted = [handle for handle, task in self._tasks.items() if not task.started]
        if not unstarted or not self._has_room(in_slot=True):
            return False
        index = self._tasks.pop(unstarted[-1]).index
        self._cancel(unstarted[-1:])
        discard(index)  # it may have started just now
        waiting.appendleft(index)
        return True

    def _cancel(self, handles: list[Any]) -> None:
        for handle in handles:
            self._ray.cancel(handle, force=True)
        ends = [handle if isinstance(handle, self._ray.ObjectRef) else handle.completed() for handle in handles]
        if ends:
            self._ray.wait(ends, num_returns=len(ends), timeout=CANCEL_TIMEOUT_S, fetch_local=False)

    def _succeeded(self, reference: Any) -> bool:
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayError:
            return False
        return True


def slot_options(ray: Any, resources: Resources) -> dict[str, Any]:
    """Options of a task in a slot. A waiting process reserves no devices, so they are requested on any node."""
    free = {**ray_options(resources), "num_cpus": 0}
    free.pop("memory", None)
    if resources.gpu or resources.tpu:
        return free
    here = ray.get_runtime_context().get_node_id()
    pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
    return {**free, "scheduling_strategy": pinned}


def _report_start_and_run(run: Callable[..., Any], *arguments: Any) -> Any:
    yield "started"
    yield run(*arguments)
