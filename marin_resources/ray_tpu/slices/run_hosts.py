"""Call the function on all reserved hosts; at the first that fails, stop the others.

In:  the hosts, and `start`, which submits the Ray task of one host. The task is a streaming generator: it yields the
     address of its process ("10.0.0.2:40123") when that runs, then the report of its end (`host_exit.py`).
Out: its end on each host. Host 0 begins first: the others get its address.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from marin_resources.ray_tpu.slices.host_exit import (
    Cancelled,
    End,
    Hung,
    Lost,
    Raised,
    SilentHostError,
    end_of_report,
    first_line,
)
from marin_resources.ray_tpu.slices.host_progress import Notes
from marin_resources.ray_tpu.slices.reservation import POLL_S, Host

PEERS_S = 30.0
"""Time limit for the end of the others when a host has raised. A peer's death makes a collective operation fail
everywhere at once, and Ray reports a dead node seconds later: the others' ends show which of the two came first."""
LOOK_EVERY_S = 5.0
"""Interval of requests to Ray's head for the dead hosts. It declares one dead that was silent for about a minute."""
CANCEL_S = 5.0
"""Time limit for the end of a process that has to stop. A process that still runs then ends with its reservation."""

log = logging.getLogger(__name__)

Start = Callable[[Host, str | None], Any]


def run_hosts(
    ray: Any,
    hosts: Sequence[Host],
    start: Start,
    *,
    notes: Notes,
    on_start: Callable[[Host], None],
    leave: Callable[[], bool],
) -> list[End]:
    """Return the end on each host, in the order in which they came. `on_start` is called when a host's process runs.

    `notes`: the notes of the hosts' progress. `leave` is called twice a second, and returns whether to stop all hosts.
    """
    calls = _Calls(ray, notes, on_start)
    try:
        calls.begin(hosts[0], start(hosts[0], None))
        while hosts[0].index not in calls.addresses and not calls.ends:
            calls.poll()
        if not calls.ends:
            for host in hosts[1:]:
                calls.begin(host, start(host, calls.addresses[hosts[0].index]))
        while calls.running and not calls.failed and not leave():
            calls.poll()
        if calls.failed:
            calls.await_peers()
    finally:
        calls.cancel()
    return [*calls.ends.values(), *(Cancelled(host=host) for host in hosts if host.index not in calls.ends)]


class _Calls:
    def __init__(self, ray: Any, notes: Notes, on_start: Callable[[Host], None]) -> None:
        self._ray, self._notes, self._on_start = ray, notes, on_start
        self.running: dict[Any, Host] = {}
        """Ray's generator -> the host it runs on."""
        self.addresses: dict[int, str] = {}
        self.ends: dict[int, End] = {}
        self._looked_s = time.monotonic()

    @property
    def failed(self) -> bool:
        return any(isinstance(end, Raised | Lost | Hung) for end in self.ends.values())

    @property
    def lost(self) -> bool:
        return any(isinstance(end, Lost) for end in self.ends.values())

    def begin(self, host: Host, generator: Any) -> None:
        self.running[generator] = host

    def poll(self) -> None:
        """Take what has arrived, or return after half a second."""
        for generator in self._ray.wait(list(self.running), timeout=POLL_S, fetch_local=False)[0]:
            self._take(generator)
        if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            self._give_up_silent()

    def await_peers(self) -> None:
        """After a host has raised, or hangs: wait until the others have ended, or one of them is lost."""
        until_s = time.monotonic() + PEERS_S
        while self.running and not self.lost and time.monotonic() < until_s:
            self.poll()

    def cancel(self) -> None:
        """Stop what still runs, without a chance to clean up: it is in a collective operation that cannot end."""
        for generator in self.running:
            self._ray.cancel(generator, force=True)
        ended = [generator.completed() for generator in self.running]
        if ended:
            self._ray.wait(ended, num_returns=len(ended), timeout=CANCEL_S, fetch_local=False)
        self.running.clear()

    def _take(self, generator: Any) -> None:
        host, errors = self.running[generator], self._ray.exceptions
        try:
            value = self._ray.get(next(generator))
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:  # the task itself, before the function
            self._end(generator, Raised(host=host, error=first_line(error), traceback=str(error)))
        except errors.RayError as error:
            self._end(generator, self._gone(host, error))
        else:
            if host.index in self.addresses:
                self._end(generator, end_of_report(host, value))
            else:
                self.addresses[host.index] = value
                self._on_start(host)

    def _give_up_silent(self) -> None:
        """End the calls on hosts that Ray's head has declared dead.

        Ray itself waits until the connection to such a host breaks: at once if it was killed; more than four minutes,
        as measured with Ray 2.60, if it stands still.
        """
        dead = _dead_nodes(self._ray)
        for generator, host in list(self.running.items()):
            if host.node_id in dead:
                self._end(generator, Lost(host=host, error=SilentHostError(f"{host.describe()} was silent for long")))

    def _gone(self, host: Host, error: Exception) -> Lost | Hung:
        """A process that noted that it hangs has killed itself."""
        noted = self._notes.get(host.index)
        if noted.hangs is None:
            return Lost(host=host, error=error)
        return Hung(host=host, error=noted.hangs, step=noted.step)

    def _end(self, generator: Any, end: End) -> None:
        del self.running[generator]
        self.ends[end.host.index] = end


def _dead_nodes(ray: Any) -> frozenset[str]:
    """The ids of the nodes that are declared dead; none if the head does not answer, which is logged."""
    try:
        return frozenset(node["NodeID"] for node in ray.nodes() if not node["Alive"])
    except ray.exceptions.RayError as error:
        log.warning("Ray's head does not say which nodes are dead: %s", error)
        return frozenset()
