"""Shards in flight as tasks of Ray: at places that this process holds, and wherever the cluster has room.

At its own places run as many shards as what it holds is enough for: they ask Ray for no CPU, as theirs is held already
and idle while this process waits. All others ask for what they need and may wait for it for ever, if all CPUs are held
by such as wait in turn. So a shard that has not begun is called back for an own place that has become free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marin_resources.hardware import Resources
from marin_resources.ray_tpu.ray_options import ray_options
from marin_resources.ray_tpu.shards.connection import task_environment
from marin_resources.ray_tpu.shards.job_allocation import Held

STOP_TIMEOUT_S = 4.0
IN_FLIGHT_FOR_EACH_PLACE = 2
"""One that runs and one that is ready to."""


@dataclass(eq=False)
class Flight:
    index: int
    own: bool
    begun: bool
    """Whether it is known to have begun, or nobody needs to know."""


class Flights:
    """The shards in flight. True while there are any."""

    def __init__(self, ray: Any, run: Callable[..., Any], resources: Resources, held: Held | None) -> None:
        self._ray, self._run = ray, run
        self._own_places = held.places(resources) if held else 0
        self._elsewhere = max(1, int(ray.cluster_resources().get("CPU", 1) / resources.cpus))
        common = {"max_retries": 0, **({"runtime_env": task_environment(resources.cpus)} if held else {})}
        asked = {**common, **ray_options(resources)}
        self._plain = ray.remote(run).options(**asked)
        self._telling = ray.remote(_tell_and_run).options(num_returns="streaming", **asked)
        self._at_own_place = ray.remote(run).options(**common, **self._own(resources))
        self._flying: dict[Any, Flight] = {}
        """By what Ray is asked for: the reference of a result, or a generator that says first that it has begun."""

    def __bool__(self) -> bool:
        return bool(self._flying)

    def send(
        self, waiting: deque[int], arguments: Callable[[int], tuple[Any, ...]], again: Callable[[int], None]
    ) -> None:
        """Send what waits, as far as there is room; `again` is called for a shard that is sent a second time."""
        while (waiting and self._has_room(own=True)) or self._call_back(waiting, again):
            self._send_one(waiting.popleft(), arguments, own=True)
        while waiting and self._has_room(own=False):
            self._send_one(waiting.popleft(), arguments, own=False)

    def await_one(self) -> tuple[int, Any] | None:
        """Wait for something to happen: a shard has ended, with Ray's reference of its result; None: one has begun."""
        [ready], _ = self._ray.wait(list(self._flying), num_returns=1)
        flight = self._flying[ready]
        reference = ready if isinstance(ready, self._ray.ObjectRef) else next(ready)
        if not flight.begun and self._succeeded(reference):
            flight.begun = True
            return None
        del self._flying[ready]
        return flight.index, reference

    def end(self) -> None:
        """Stop what is in flight, so that no writer outlives its stage."""
        self._cancel(list(self._flying))
        self._flying.clear()

    def _own(self, resources: Resources) -> dict[str, Any]:
        """Devices are held by nobody who waits, so they are asked for, wherever they are."""
        free = {**ray_options(resources), "num_cpus": 0}
        free.pop("memory", None)
        if resources.gpu or resources.tpu:
            return free
        here = self._ray.get_runtime_context().get_node_id()
        pinned = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        return {**free, "scheduling_strategy": pinned}

    def _has_room(self, *, own: bool) -> bool:
        flying = sum(flight.own is own for flight in self._flying.values())
        return flying < (self._own_places if own else IN_FLIGHT_FOR_EACH_PLACE * self._elsewhere)

    def _send_one(self, index: int, arguments: Callable[[int], tuple[Any, ...]], *, own: bool) -> None:
        if own:
            sent = self._at_own_place.remote(*arguments(index))
        elif self._own_places:
            sent = self._telling.remote(self._run, *arguments(index))
        else:
            sent = self._plain.remote(*arguments(index))
        self._flying[sent] = Flight(index, own, begun=own or not self._own_places)

    def _call_back(self, waiting: deque[int], again: Callable[[int], None]) -> bool:
        """If an own place is free: take the shard that was sent last of those that have not begun. It waits again."""
        not_begun = [task for task, flight in self._flying.items() if not flight.begun]
        if not not_begun or not self._has_room(own=True):
            return False
        index = self._flying.pop(not_begun[-1]).index
        self._cancel(not_begun[-1:])
        again(index)  # it may have begun just now
        waiting.appendleft(index)
        return True

    def _cancel(self, tasks: list[Any]) -> None:
        for task in tasks:
            self._ray.cancel(task, force=True)
        ends = [task if isinstance(task, self._ray.ObjectRef) else task.completed() for task in tasks]
        if ends:
            self._ray.wait(ends, num_returns=len(ends), timeout=STOP_TIMEOUT_S, fetch_local=False)

    def _succeeded(self, reference: Any) -> bool:
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayError:
            return False
        return True


def _tell_and_run(run: Callable[..., Any], *arguments: Any) -> Any:
    yield "begun"
    yield run(*arguments)
