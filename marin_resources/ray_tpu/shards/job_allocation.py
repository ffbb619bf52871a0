"""What the process of a step has for the shards that the step maps: CPUs that it holds, and names of what they need.

A job's driver holds CPUs and memory by its supervisor, an actor of Ray, so they are not given to others while it waits
for its shards. They are the job's own, and its shards use them (`shard_flights.py`): jobs that hold all CPUs there are
would wait for one another else. Nothing is held elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from marin_resources.hardware import Resources

RAYS_OUTPUT = {"RAY_COLOR_PREFIX": "0", "RAY_DEDUP_LOGS": "0"}
"""What processes on other nodes print arrives as it is: without colours, and each line though others printed the same.
Ray looks when it is imported."""


@dataclass(frozen=True, kw_only=True)
class Held:
    cpus: float
    memory_bytes: int | None = None
    """None: none is reserved."""
    lent_while_waiting: bool = False
    """Whether Ray gives the CPUs to others while this process waits for shards: those of a task, not those of a job."""

    def places(self, resources: Resources) -> int:
        """How many shards with these resources may use what is held, though it be too little for one."""
        if self.lent_while_waiting:
            return 0
        fit = [self.cpus / resources.cpus]
        if resources.memory_bytes and self.memory_bytes:
            fit.append(self.memory_bytes / resources.memory_bytes)
        return max(1, int(min(fit)))

    def covers(self, resources: Resources) -> bool:
        """Whether a shard with these resources may run in this very process."""
        memory = not resources.memory_bytes or resources.memory_bytes <= (self.memory_bytes or 0)
        return memory and resources.cpus <= self.cpus and not resources.gpu and not resources.tpu


@dataclass(frozen=True, kw_only=True)
class Needs:
    env: tuple[str, ...] = ()
    """Names of variables; their values are looked up where a shard runs."""
    packages: tuple[str, ...] = ()
    """Requirements beyond the environment."""


_held: Held | None = None
_needs = Needs()


@contextmanager
def hold(cpus: float, memory_bytes: int | None = None, *, lent_while_waiting: bool = False) -> Iterator[None]:
    """While the block runs, this process, a job's, holds that for its step. One step at a time in a process.

    Enter it before the step's modules are imported, as they may import Ray.
    """
    global _held
    if _held is not None:
        raise RuntimeError(f"This process holds {_held!r} for a step already. Run one step at a time in a process.")
    os.environ.update(RAYS_OUTPUT)
    _held = Held(cpus=cpus, memory_bytes=memory_bytes, lent_while_waiting=lent_while_waiting)
    try:
        yield
    finally:
        _held = None


@contextmanager
def need(env: Sequence[str] = (), packages: Sequence[str] = ()) -> Iterator[None]:
    """While the block runs, the shards of this process's step get these variables and packages, wherever they run."""
    global _needs
    before, _needs = _needs, Needs(env=tuple(env), packages=tuple(packages))
    try:
        yield
    finally:
        _needs = before


def held() -> Held | None:
    """What this process holds; None where steps are no jobs, and in the processes of shards."""
    return _held


def needs() -> Needs:
    """What the shards of this process's step need."""
    return _needs
