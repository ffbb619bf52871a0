"""Copies of one object in Ray processes of their own, among which calls are spread: servers of a model on many hosts.

A copy whose process or node is lost is opened again elsewhere, and the calls that it had go to the others. Lost nodes
are not counted with lost processes: a preemptible one may go any number of times, and a call that ends its process
must not be repeated for ever.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from marin_resources.hardware.resources import Resources
from marin_resources.host.process import cpu_seconds
from marin_resources.ray_tpu.ray_options import alive_nodes, ray_options, shortcomings
from marin_resources.ray_tpu.shards.connection import connect, task_environment
from marin_resources.ray_tpu.shards.cpu_elsewhere import add_cpu_elsewhere
from marin_resources.ray_tpu.shards.in_flight import slot_options
from marin_resources.ray_tpu.shards.job_allocation import current_allocation
from marin_resources.ray_tpu.shards.worker_context import activate, worker_context
from marin_resources.types.errors import MarinError
from marin_resources.wire.reference import load, reference_to

NODE_DIED = "node has died"
"""In Ray's error of an actor whose node is gone."""
LOSSES = 3
"""Losses of processes, for each copy, without one answer between, after which no more are opened."""
PREEMPTIONS = 10_000
"""Losses of nodes, after which no more copies are opened: as many as a step on slices has."""
WAITING_EVERY_S = 60.0
LOOK_EVERY_S = 5.0
"""Interval of requests to Ray's head for dead nodes, while calls are awaited. It declares one dead that was silent for
about a minute; a connection to a node that stands still breaks after more than four."""
CLOSE_TIMEOUT_S = 40.0
SETTLED_S, LOOK_AGAIN_S = 30.0, 0.5
"""Time limit, and interval of looks, for the head to know that a node is dead whose connections broke."""

log = logging.getLogger(__name__)


class _SilentNodeError(Exception):
    """Ray's head has declared the node of a copy dead."""


class ReplicaError(MarinError):
    """The processes of the copies are lost again and again: one sentence."""


@dataclass(eq=False)
class _Replica:
    number: int
    actor: Any
    node: str = ""
    """The id of its node, when it is open."""
    is_open: bool = False
    calls: int = 0
    """Calls under way."""


class Replicas:
    """Open copies of an object. Use it in a `with` block, and `call` from many threads."""

    def __init__(
        self,
        open_object: Callable[..., AbstractContextManager[Any]],
        arguments: Sequence[Any],
        *,
        count: int,
        resources: Resources,
        calls_at_once: int,
        uses_allocation: bool = True,
    ) -> None:
        """`open_object` is importable; called with `arguments`, plain values, it gives the context manager of a copy.

        `resources` are those of one copy. A copy gets `calls_at_once` calls at most. `uses_allocation`: the first ones
        run on what this process reserves, which is idle if it only waits for answers; False: all have their own.
        """
        self._reference, self._arguments = reference_to(open_object), tuple(arguments)
        self._count, self._resources, self._calls_at_once = count, resources, calls_at_once
        self._uses_allocation = uses_allocation
        self._replicas: list[_Replica] = []
        self._changed = threading.Condition()
        self._losses = 0
        """Losses of processes since the last answer."""
        self._preemptions = 0
        """Losses of nodes."""
        self._looked_s, self._dead = 0.0, frozenset[str]()
        self._failure: BaseException | None = None
        self._closed = False

    def __enter__(self) -> Self:
        """Open them, and wait for the first. Raises the error of a copy that cannot be opened, ReplicaError."""
        self._ray, self._context = connect(), worker_context()
        allocation = current_allocation() if self._uses_allocation else None
        self._in_slots = min(self._count, allocation.slots(self._resources)) if allocation else 0
        try:
            with self._changed:
                for number in range(self._count):
                    self._open(number)
                self._changed.wait_for(lambda: self._failure or any(replica.is_open for replica in self._replicas))
            if self._failure is not None:
                raise self._failure
        except BaseException:  # Ctrl-C too: no copy without its block
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def call(self, method: str, *arguments: Any) -> Any:
        """Return what `method` of the copy with the fewest calls returns. Blocks.

        Raises as the method does, ReplicaError.
        """
        from ray.exceptions import RayError, RayTaskError  # late, for its weight

        while True:
            replica = self._take()
            try:
                answer = self._await(replica, replica.actor.call.remote(method, arguments))
            except RayTaskError as error:
                raise error.cause or error from None  # it has none that could not be sent
            except (RayError, _SilentNodeError) as error:
                self._lose(replica, error)
            else:
                self._losses = 0
                return answer
            finally:
                with self._changed:
                    replica.calls -= 1
                    self._changed.notify_all()

    def _await(self, replica: _Replica, reference: Any) -> Any:
        """The answer to a call. Raises RayError, _SilentNodeError."""
        while not self._ray.wait([reference], timeout=LOOK_EVERY_S)[0]:
            if replica.node in self._dead_nodes():
                raise _SilentNodeError("its node was silent for long")
        return self._ray.get(reference)

    def _dead_nodes(self) -> frozenset[str]:
        """Their ids, which the head is not requested for more often than that."""
        if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            self._dead = frozenset(node["NodeID"] for node in self._ray.nodes() if not node["Alive"])
        return self._dead

    def _take(self) -> _Replica:
        """The copy with the fewest calls, with one more."""
        with self._changed:
            while True:
                if self._failure is not None:
                    raise self._failure
                if self._closed:
                    raise ReplicaError("The copies were closed with the step.")
                is_open = [replica for replica in self._replicas if replica.is_open]
                replica = min(is_open, key=lambda replica: replica.calls, default=None)
                if replica is not None and replica.calls < self._calls_at_once:
                    replica.calls += 1
                    return replica
                self._changed.wait()

    def _open(self, number: int) -> None:
        """Begin to open a copy. The caller holds the lock."""
        in_slot = number < self._in_slots
        placed = slot_options(self._ray, self._resources) if in_slot else ray_options(self._resources)
        options = {"runtime_env": self._environment(), **placed}
        process = self._ray.remote(_Process).options(
            max_restarts=0, max_task_retries=0, max_concurrency=self._calls_at_once + 1, **options
        )
        replica = _Replica(number, process.remote(self._reference, self._arguments, self._context))
        self._replicas.append(replica)
        threading.Thread(target=self._await_opened, args=(replica,), name=f"copy-{number}", daemon=True).start()

    def _environment(self) -> dict[str, Any]:
        """Ray's runtime_env of a copy. jax would take the devices of a node for a copy that requests none."""
        environment = task_environment(self._resources.cpus)
        if self._resources.devices == 0:
            environment["env_vars"]["JAX_PLATFORMS"] = "cpu"
        return environment

    def _await_opened(self, replica: _Replica) -> None:
        from ray.exceptions import RayError, RayTaskError  # late, for its weight

        opened = replica.actor.open.remote()
        try:
            while not self._ray.wait([opened], timeout=WAITING_EVERY_S)[0]:
                log.info("copy %d of %d is not open yet: %s", replica.number + 1, self._count, self._state())
            replica.node = self._ray.get(opened)
        except RayTaskError as error:
            self._fail(error.cause or error)
        except RayError as error:
            self._lose(replica, error)
        else:
            with self._changed:
                replica.is_open = True
                self._changed.notify_all()
            log.info("copy %d of %d is open", replica.number + 1, self._count)

    def _state(self) -> str:
        is_open = sum(replica.is_open for replica in self._replicas)
        short = shortcomings(self._resources, alive_nodes(self._ray))
        missing = f", which no node has now: {short}" if short else ""
        return f"{is_open} are, each wants {self._resources.describe()}{missing}"

    def _lose(self, replica: _Replica, error: BaseException) -> None:
        """Have another copy in the place of a lost one, unless another thread has."""
        with self._changed:
            if replica not in self._replicas or self._closed:
                return
            self._replicas.remove(replica)
            self._ray.kill(replica.actor)  # on a node that stands still it may wake up
        threading.Thread(target=self._replace, args=(replica, error), name="lost copy", daemon=True).start()

    def _replace(self, replica: _Replica, error: BaseException) -> None:
        """Open another copy while the budget for the cause allows it."""
        reason = f"{type(error).__name__}: {' '.join(str(error).split()):.300}"
        lost_node = self._lost_its_node(replica, error)
        with self._changed:
            if self._closed:
                return
            if lost_node:
                self._preemptions += 1
                is_exhausted = self._preemptions > PREEMPTIONS
                lost = f"Nodes of copies were lost {self._preemptions} times"
            else:
                self._losses += 1
                is_exhausted = self._losses > LOSSES * self._count
                lost = f"Processes were lost {self._losses} times without an answer between"
            if is_exhausted:
                self._failure = ReplicaError(f"{lost}, the last by {reason}")
            else:
                copy, part = f"copy {replica.number + 1} of {self._count}", "node" if lost_node else "process"
                log.warning("%s lost its %s (%s); it is opened again", copy, part, reason)
                self._open(replica.number)
            self._changed.notify_all()

    def _lost_its_node(self, replica: _Replica, error: BaseException) -> bool:
        """Whether the node of the copy is gone too. Ray's error mostly has it, and the list of nodes somewhat later."""
        from ray.exceptions import ActorUnavailableError, NodeDiedError  # late, for its weight

        if isinstance(error, NodeDiedError | _SilentNodeError) or NODE_DIED in str(error):
            return True
        until_s = time.monotonic() + (SETTLED_S if isinstance(error, ActorUnavailableError) else 0)
        while not (is_dead := any(node["NodeID"] == replica.node and not node["Alive"] for node in self._ray.nodes())):
            if time.monotonic() >= until_s:
                break
            time.sleep(LOOK_AGAIN_S)
        return is_dead

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def _close(self) -> None:
        with self._changed:
            self._closed = True
            replicas, self._replicas = self._replicas, []
            self._changed.notify_all()
        closed = [replica.actor.close.remote() for replica in replicas if replica.is_open]
        ready = self._ray.wait(closed, num_returns=len(closed), timeout=CLOSE_TIMEOUT_S)[0] if closed else []
        for replica in replicas:
            self._ray.kill(replica.actor)
        for reference in ready:
            self._add_cpu(reference)

    def _add_cpu(self, closed: Any) -> None:
        from ray.exceptions import RayError  # late, for its weight

        try:
            add_cpu_elsewhere(self._ray.get(closed))
        except RayError as error:
            log.warning("a copy did not close (%s): its CPU time is not counted", type(error).__name__)


class _Process:
    """A Ray actor with a copy."""

    def __init__(self, reference: str, arguments: Sequence[Any], context: Mapping[str, Any]) -> None:
        self._reference, self._arguments, self._context = reference, arguments, context
        self._object: Any = None
        self._activated, self._opened = ExitStack(), ExitStack()

    def open(self) -> str:
        """Open the copy. Returns the id of this node."""
        import ray  # late, for its weight

        self._activated.enter_context(activate(self._context))  # until the process ends
        self._object = self._opened.enter_context(load(self._reference)(*self._arguments))
        return str(ray.get_runtime_context().get_node_id())

    def call(self, method: str, arguments: Sequence[Any]) -> Any:
        return getattr(self._object, method)(*arguments)

    def close(self) -> float:
        """Close the copy. Returns the CPU seconds of this process and of those that it had started."""
        self._opened.close()
        return cpu_seconds()
