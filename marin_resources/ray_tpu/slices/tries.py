"""Try a function on slices until it returns: again and again after a preemption, a few times after what another host
may not have, never after its own error.

The reservation of a try ends with it. Between two tries nothing is held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from marin_resources.ray_tpu.slices.causes import Cause, Failure, failure_of
from marin_resources.ray_tpu.slices.ends import End, Returned
from marin_resources.ray_tpu.slices.reservation import Host
from marin_resources.ray_tpu.slices.run_hosts import Start, run_hosts

BUDGETS = {
    Cause.PREEMPTED: 10_000,
    Cause.BAD_HOST: 10,
    Cause.LOST_WORKER: 10,
    Cause.OUT_OF_MEMORY: 0,
    Cause.ERROR: 0,
}
"""How many times a try that failed so is repeated. The first two are Levanter's (infra/ray_tpu.py)."""
PAUSE_S = {Cause.BAD_HOST: 1.0, Cause.LOST_WORKER: 0.5}
"""Before the first repeat; twice as long before each further one, up to LONGEST_PAUSE_S. A preempted step waits for a
slice anyway."""
LONGEST_PAUSE_S = 60.0
ADVICE = {
    Cause.OUT_OF_MEMORY: "Use a smaller batch, more hosts, or hosts with more memory.",
    Cause.BAD_HOST: "Look at these hosts: other processes may hold their devices.",
}


class TriesFailedError(Exception):
    """The function was not tried again: one sentence, and the traceback of the first host that raised."""

    def __init__(self, sentence: str, traceback: str) -> None:
        super().__init__(sentence)
        self.sentence, self.traceback = sentence, traceback


@dataclass(kw_only=True)
class Try:
    """One try, as the ledger of the attempt has it. Times are in seconds."""

    number: int
    slices: list[str]
    hosts: list[str]
    """Their addresses."""
    waited_s: float
    """For the hosts."""
    started_at: str
    """ISO 8601, UTC."""
    ran_s: float | None = None
    cause: str | None = None
    """None while it runs, and if the function returned."""
    host: int | None = None
    """The index of the host with the cause."""
    error: str | None = None


@dataclass(kw_only=True)
class Tries:
    """The tries of one attempt."""

    ray: Any
    reserve: Callable[[Collection[str]], AbstractContextManager[tuple[Host, ...]]]
    """Reserves the hosts of the next try, on none of the nodes with these ids."""
    begin: Callable[[int], Callable[[Sequence[Host]], Start]]
    """Called with the number of a try when its hosts are there; returns what starts the function on them."""
    began: Callable[[], None]
    """Called when the function begins for the first time."""
    changed: Callable[[], None]
    """Called when the ledger has changed."""
    on_bad_host: Callable[[Host, str], None]
    log: Callable[[str], None]
    waited_s: float = 0.0
    """How long the hosts of the first try were waited for, if that was before."""
    has_begun: bool = False
    ledger: list[Try] = field(default_factory=list)
    failures: dict[Cause, int] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    """The ids of nodes that died. Ray may offer them for half a minute more."""

    def run(self) -> Any:
        """The result of host 0, as JSON. Raises TriesFailedError, and what `reserve` raises."""
        while True:
            ends = self._try()
            failure = failure_of(ends, self._is_alive)
            self._note(failure)
            if failure is None:
                return next(end.result for end in ends if isinstance(end, Returned) and end.host.index == 0)
            times = self.failures[failure.cause] = self.failures.get(failure.cause, 0) + 1
            if times > BUDGETS[failure.cause]:
                raise self._given_up(failure, times)
            if failure.cause is Cause.PREEMPTED:
                self.dead.add(failure.host.node_id)
            if failure.cause is Cause.BAD_HOST:
                self.on_bad_host(failure.host, failure.error)
            pause_s = min(PAUSE_S.get(failure.cause, 0.0) * 2 ** (times - 1), LONGEST_PAUSE_S)
            after = f" in {pause_s:g} s" if pause_s else ""
            self.log(f"{_what(failure)}; trying again{after} ({times} of {BUDGETS[failure.cause]})")
            time.sleep(pause_s)

    def _try(self) -> list[End]:
        number, began_s = len(self.ledger) + 1, time.monotonic()
        with self.reserve(self.dead) as hosts:
            starter = self.begin(number)
            self.ledger.append(_new_try(number, hosts, self.waited_s + time.monotonic() - began_s))
            self.waited_s = 0.0
            self.changed()
            where = ", ".join(host.describe() for host in hosts)
            self.log(f"try {number} runs on {where}")
            ran_since_s = time.monotonic()
            try:
                return run_hosts(self.ray, hosts, starter(hosts), self._on_start)
            finally:
                self.ledger[-1].ran_s = round(time.monotonic() - ran_since_s, 3)

    def _on_start(self, host: Host) -> None:
        if host.index == 0 and not self.has_begun:
            self.has_begun = True
            self.began()

    def _is_alive(self, node_id: str) -> bool:
        return any(node["NodeID"] == node_id and node["Alive"] for node in self.ray.nodes())

    def _note(self, failure: Failure | None) -> None:
        entry = self.ledger[-1]
        if failure is not None:
            entry.cause, entry.host, entry.error = failure.cause.value, failure.host.index, failure.error
        self.changed()

    def _given_up(self, failure: Failure, times: int) -> TriesFailedError:
        if failure.cause is Cause.ERROR:
            return TriesFailedError(failure.error, failure.traceback)
        again = f", for the {times}th time" if times > 1 else ""
        advice = ADVICE.get(failure.cause, "")
        return TriesFailedError(f"{_what(failure)}{again}. {advice}".strip(), failure.traceback)


def _what(failure: Failure) -> str:
    return f"{failure.cause} on host {failure.host.index}, {failure.host.describe()}: {failure.error}"


def _new_try(number: int, hosts: Sequence[Host], waited_s: float) -> Try:
    return Try(
        number=number,
        slices=list(dict.fromkeys(host.slice_name for host in hosts if host.slice_name)),
        hosts=[host.address for host in hosts],
        waited_s=round(waited_s, 3),
        started_at=datetime.now(UTC).isoformat(),
    )
