"""One step on one slice, on a simulated clock: the slice runner's own loop over tries (`slices/tries.py`).

What is simulated is the slice, which is there or away, and the function, which starts, works, and saves at intervals.
What follows from a loss is the runner's: the cause, the pause, the budget, the next try, and the ledger.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from marin_resources.hardware import Resources
from marin_resources.ray_tpu.simulate.trace import Away
from marin_resources.ray_tpu.slices.causes import Failure, failure_of
from marin_resources.ray_tpu.slices.ends import Cancelled, End, Lost, Returned
from marin_resources.ray_tpu.slices.host_progress import HostProgress, Notes
from marin_resources.ray_tpu.slices.reservation import Host
from marin_resources.ray_tpu.slices.run_hosts import Start
from marin_resources.ray_tpu.slices.tries import Clock, Tries

BEGINS = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What the function does."""

    startup_s: float
    """Processes, imports, compilation, loading of a checkpoint: before each try's work."""
    interval_s: float
    """Work between two checkpoints."""
    save_s: float
    """How long it stands still to save."""
    notice_s: float = 3.0
    """From a host's death to the end of the try, as measured on loopback."""


class SimulatedClock(Clock):
    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def now(self) -> datetime:
        return BEGINS + timedelta(seconds=self.now_s)


class _Notes(Notes):
    """The notes of a try, without Ray."""

    progress = HostProgress()

    def get(self, host: int) -> HostProgress:
        return self.progress

    def remove(self) -> None:
        pass


def run_on_slice(away: Sequence[Away], hosts: int, horizon_s: float, work: Work) -> list[dict[str, Any]]:
    """The tries of a step that works on a slice until `horizon_s`, as a record has them."""
    clock = SimulatedClock()
    slice_ = _Slice(away, hosts, clock, horizon_s)
    tries = _SimulatedTries(
        ray=None,
        resources=Resources(),
        attempt=1,
        name="simulated",
        reserve=slice_.reserve,
        begin=lambda number: lambda placed, name: _never,
        began=lambda: None,
        changed=lambda: None,
        on_bad_host=lambda host, error: None,
        log=lambda sentence: None,
        clock=clock,
        notes_of=_Notes,
        slice_=slice_,
        work=work,
    )
    tries.run()
    return [each.to_dict() for each in tries.ledger]


class _Slice:
    def __init__(self, away: Sequence[Away], hosts: int, clock: SimulatedClock, horizon_s: float) -> None:
        self._away, self._gone = list(away), [gone_s for gone_s, _ in away]
        self._clock, self.horizon_s = clock, horizon_s
        self._hosts = [
            Host(
                index=index,
                slice_index=0,
                slice_name="simulated",
                node_id=str(index),
                address=f"host {index}",
                group=None,
                bundle=index,
            )
            for index in range(hosts)
        ]

    @contextmanager
    def reserve(self, dead: Collection[str]) -> Iterator[tuple[Host, ...]]:
        """Wait until the slice is there."""
        before = bisect.bisect_right(self._gone, self._clock.now_s) - 1
        if before >= 0:
            self._clock.now_s = max(self._clock.now_s, min(self._away[before][1], self.horizon_s))
        yield tuple(self._hosts)

    def next_loss_s(self) -> float:
        """When it is taken next; the horizon if that is before."""
        after = bisect.bisect_right(self._gone, self._clock.now_s)
        return min(self._gone[after], self.horizon_s) if after < len(self._gone) else self.horizon_s


class _SimulatedTries(Tries):
    def __init__(self, *, slice_: _Slice, work: Work, **fields: Any) -> None:
        super().__init__(**fields)
        self._slice, self._work = slice_, work

    def _run(self, hosts: Sequence[Host], start: Start, notes: Notes) -> tuple[list[End], Failure | None]:
        from ray.exceptions import NodeDiedError  # late, for its weight

        work, began_s, until_s = self._work, self.clock.monotonic(), self._slice.next_loss_s()
        done = until_s >= self._slice.horizon_s
        ran_s = until_s - began_s + (0.0 if done else work.notice_s)
        progress = progress_after(until_s - began_s, work)
        self.clock.sleep(ran_s)
        ends: list[End] = [Returned(host=host, result={}) for host in hosts]
        if not done:
            lost = Lost(host=hosts[0], error=NodeDiedError("the slice was taken"))
            ends = [lost, *(Cancelled(host=host) for host in hosts[1:])]
        failure = failure_of(ends, lambda node_id: node_id != "0" or done)
        entry = self.ledger[-1]
        entry.end(ran_s, 0.0, progress, succeeded=failure is None)
        if failure is not None:
            entry.cause, entry.host, entry.error = failure.cause.value, failure.host.index, failure.error
        return ends, failure


def progress_after(ran_s: float, work: Work) -> HostProgress:
    """What the function has noted after so many seconds."""
    if ran_s < work.startup_s:
        return HostProgress()
    saved = int((ran_s - work.startup_s) // (work.interval_s + work.save_s))
    if not saved:
        return HostProgress(began_s=work.startup_s)
    saved_s = work.startup_s + saved * (work.interval_s + work.save_s)
    return HostProgress(began_s=work.startup_s, saved_step=saved, saved_s=saved_s)


def _never(*arguments: Any) -> Any:
    raise AssertionError("a simulated try starts nothing")
