"""Try a function on slices until it returns: again and again after a preemption, a few times after what another host
may not have, never after its own error, or a second crash at the same place.

The reservation of a try ends with it. Between two tries nothing is held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.slices.causes import Cause, Failure, failure_of
from marin_resources.ray_tpu.slices.drain import Drain
from marin_resources.ray_tpu.slices.host_crash import crash_of
from marin_resources.ray_tpu.slices.host_exit import Cancelled, End, Returned
from marin_resources.ray_tpu.slices.host_progress import HostProgress, Notes
from marin_resources.ray_tpu.slices.reservation import Host
from marin_resources.ray_tpu.slices.run_hosts import Start, run_hosts
from marin_resources.ray_tpu.slices.scale_up import ScaleUp, slice_count

BUDGETS = {
    Cause.PREEMPTED: 10_000,
    Cause.MORE_SLICES: 10_000,
    Cause.BAD_HOST: 10,
    Cause.HANG: 10,
    Cause.LOST_WORKER: 10,
    Cause.OUT_OF_MEMORY: 0,
    Cause.ERROR: 0,
}
"""Number of repeats of a try that failed for this cause. The first two are Levanter's (infra/ray_tpu.py)."""
PAUSE_S = {Cause.BAD_HOST: 1.0, Cause.HANG: 1.0, Cause.LOST_WORKER: 0.5}
"""Before the first repeat; twice as long before each further one, up to LONGEST_PAUSE_S. A preempted step waits for a
slice anyway."""
LONGEST_PAUSE_S = 60.0
MOST_DOUBLINGS = 10
"""No float holds two to the power of a thousand preemptions."""
ADVICE = {
    Cause.OUT_OF_MEMORY: "Use a smaller batch, more hosts, or hosts with more memory.",
    Cause.BAD_HOST: "Look at these hosts: other processes may hold their devices.",
    Cause.HANG: "Look at the stacks in the log, and whether progress_timeout_s covers a compilation and a checkpoint.",
}

CRASHED = "Its machine was not lost, so it would crash again."


class TriesFailedError(Exception):
    """The function was not tried again: one sentence, and the traceback of the first host that raised."""

    def __init__(self, sentence: str, traceback: str) -> None:
        super().__init__(sentence)
        self.sentence, self.traceback = sentence, traceback


@dataclass(kw_only=True)
class RetryLoop:
    """The tries of one attempt."""

    ray: Any
    resources: Resources
    attempt: int
    name: str
    """The name of this attempt, and of no other in the cluster."""
    reserve: Callable[[Collection[str]], AbstractContextManager[tuple[Host, ...]]]
    """Reserves the hosts of the next try, on none of the nodes with these ids."""
    begin: Callable[[int], Callable[[Sequence[Host], str], Start]]
    """Called with the number of a try when its hosts are reserved; returns a function that starts the step's
    function on them, given the name of the notes of its progress."""
    began: Callable[[], None]
    """Called when the function begins for the first time."""
    changed: Callable[[], None]
    """Called when the ledger has changed."""
    on_bad_host: Callable[[Host, Failure], None]
    """Called with each host that steps are to avoid for a while."""
    log: Callable[[str], None]
    waited_s: float = 0.0
    """Seconds of waiting for the hosts of the first try, if that was before."""
    has_begun: bool = False
    ledger: list[Try] = field(default_factory=list)
    failures: dict[Cause, int] = field(default_factory=dict)
    crashes: dict[str, int] = field(default_factory=dict)
    """Each crash of a host's process -> the try in which it came first."""
    dead: set[str] = field(default_factory=set)
    """The ids of nodes that died. Ray may offer them for half a minute more."""

    def run(self) -> Any:
        """The result of host 0, as JSON. Raises TriesFailedError, and what `reserve` raises."""
        while True:
            ends, failure = self._try()
            if failure is None:
                return next(end.result for end in ends if isinstance(end, Returned) and end.host.index == 0)
            times = self.failures[failure.cause] = self.failures.get(failure.cause, 0) + 1
            if times > BUDGETS[failure.cause]:
                raise self._given_up(failure, times)
            number = len(self.ledger)
            if failure.crash and (first := self.crashes.setdefault(failure.crash, number)) != number:
                raise TriesFailedError(f"{_what(failure)}, in tries {first} and {number} alike. {CRASHED}", "")
            if failure.cause is Cause.PREEMPTED:
                self.dead.add(failure.host.node_id)
            for host in failure.avoid:
                self.on_bad_host(host, failure)
            doublings = min(times - 1, MOST_DOUBLINGS)
            pause_s = min(PAUSE_S.get(failure.cause, 0.0) * 2**doublings, LONGEST_PAUSE_S)
            after = f" in {pause_s:g} s" if pause_s else ""
            again = f"; trying again{after} ({times} of {BUDGETS[failure.cause]})"
            self.log(f"{_what(failure)}{again}" if failure.cause is not Cause.MORE_SLICES else failure.error)
            time.sleep(pause_s)

    def _try(self) -> tuple[list[End], Failure | None]:
        number, began_s = len(self.ledger) + 1, time.monotonic()
        with self.reserve(self.dead) as hosts:
            starter = self.begin(number)
            self.ledger.append(self._new_try(number, hosts, self.waited_s + time.monotonic() - began_s))
            self.waited_s = 0.0
            self.changed()
            where = ", ".join(host.describe() for host in hosts)
            self.log(f"try {number} runs on {where}")
            notes = Notes(f"{self.name}-{number}")
            try:
                return self._run(hosts, starter(hosts, notes.name), notes)
            finally:
                notes.remove()

    def _run(self, hosts: Sequence[Host], start: Start, notes: Notes) -> tuple[list[End], Failure | None]:
        departure = Drain(self.ray, hosts, notes, ScaleUp(self.resources, hosts, self.dead))
        since_s, called_s = time.monotonic(), 0.0

        def on_start(host: Host) -> None:
            nonlocal called_s
            if host.index == 0:
                called_s = time.monotonic() - since_s
                if not self.has_begun:
                    self.has_begun = True
                    self.began()

        entry, succeeded = self.ledger[-1], False
        try:
            ends = run_hosts(self.ray, hosts, start, notes=notes, on_start=on_start, leave=departure.is_due)
            failure = self._with_crash(failure_of(ends, self._is_alive), hosts, notes)
            if failure is None and any(isinstance(end, Cancelled) for end in ends):
                failure = departure.why
            succeeded = failure is None
        finally:  # also when the step is stopped
            departure.end()
            entry.end(time.monotonic() - since_s, called_s, notes.get(0), succeeded=succeeded)
        if failure is not None:
            entry.cause, entry.host, entry.error = failure.cause.value, failure.host.index, failure.error
        self.changed()
        return ends, failure

    def _with_crash(self, failure: Failure | None, hosts: Sequence[Host], notes: Notes) -> Failure | None:
        """The failure, with the crash of its host if that is the cause. Its stack is logged."""
        if failure is None or failure.cause is not Cause.LOST_WORKER:
            return failure
        crash = crash_of(self.ray, hosts, failure.host, notes.name)
        if crash is None:
            return failure
        self.log(crash.text.rstrip())
        return replace(failure, error=crash.phrase, crash=crash.phrase)

    def _new_try(self, number: int, hosts: Sequence[Host], waited_s: float) -> Try:
        return Try(
            attempt=self.attempt,
            number=number,
            slices=list(dict.fromkeys(host.slice_name for host in hosts if host.slice_name)),
            hosts=[host.address for host in hosts],
            devices=self.resources.devices_of(slice_count(hosts)),
            waited_s=round(waited_s, 3),
            started_at=datetime.now(UTC).isoformat(),
        )

    def _is_alive(self, node_id: str) -> bool:
        return any(node["NodeID"] == node_id and node["Alive"] for node in self.ray.nodes())

    def _given_up(self, failure: Failure, times: int) -> TriesFailedError:
        if failure.cause is Cause.ERROR:
            return TriesFailedError(failure.error, failure.traceback)
        again = f", for the {times}th time" if times > 1 else ""
        advice = ADVICE.get(failure.cause, "")
        return TriesFailedError(f"{_what(failure)}{again}. {advice}".strip(), failure.traceback)


def _what(failure: Failure) -> str:
    return f"{failure.cause} on host {failure.host.index}, {failure.host.describe()}: {failure.error}"


@dataclass(kw_only=True)
class Try:
    """One try, as mark and record of its attempt have it. Times are in seconds."""

    attempt: int
    number: int
    """In its attempt, from 1."""
    slices: list[str]
    hosts: list[str]
    """Their addresses."""
    devices: int
    """GPUs, or chips of TPUs, of all hosts together."""
    waited_s: float
    started_at: str
    """ISO 8601, UTC: when its hosts were there."""
    ran_s: float | None = None
    """startup + kept + lost. None while it runs, and if its job was lost with it."""
    startup_s: float | None = None
    kept_s: float | None = None
    lost_s: float | None = None
    resumed_from: int | None = None
    """The step of the checkpoint that it resumed from."""
    saved_step: int | None = None
    """The step of its last complete checkpoint."""
    cause: str | None = None
    """Why it failed. None while it runs, and if the function returned."""
    host: int | None = None
    """The index of the host with the cause."""
    error: str | None = None

    def end(self, ran_s: float, called_s: float, noted: HostProgress, *, succeeded: bool) -> None:
        """Fill in the times. `called_s`: when host 0 called the function, since the try began."""
        began_s = 0.0 if noted.began_s is None else min(called_s + noted.began_s, ran_s)
        until_s = ran_s if succeeded else began_s
        if not succeeded and noted.saved_s is not None:
            until_s = max(min(called_s + noted.saved_s, ran_s), began_s)
        self.ran_s, self.startup_s = round(ran_s, 3), round(began_s, 3)
        self.kept_s, self.lost_s = round(until_s - began_s, 3), round(ran_s - until_s, 3)
        self.resumed_from, self.saved_step = noted.resumed_from, noted.saved_step

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
