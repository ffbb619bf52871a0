"""The reservation of a step's process for the shards that it maps, and the requirements of these shards.

The supervisor of a job, a Ray actor, reserves CPUs and memory for the job's process, so Ray gives them to no other
task while the process waits for its shards. The shards use them (`in_flight.py`): otherwise jobs that reserve all CPUs
of a cluster would wait for each other. A step that is not a job reserves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from marin_resources.hardware.resources import Resources

RAY_OUTPUT_VARIABLES = {"RAY_COLOR_PREFIX": "0", "RAY_DEDUP_LOGS": "0", "RAY_SCHEDULER_EVENTS": "0"}
"""Output of processes on other nodes arrives unchanged: without colours and without deduplication of equal lines, and
the autoscaler does not print what it thinks of other steps. Ray reads the variables when it is imported."""


@dataclass(frozen=True, kw_only=True)
class JobAllocation:
    """CPUs and memory that Ray reserves for the process of a job."""

    cpus: float
    memory_bytes: int | None = None
    """None: no memory is reserved."""
    lent_while_waiting: bool = False
    """Whether Ray lends the CPUs to others while this process waits for shards: it does for a task, not for a job."""

    def slots(self, resources: Resources) -> int:
        """Return how many shards with these resources may use the allocation at once: at least one, even if larger."""
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
class ShardRequirements:
    """The requirements of the process of a shard, which are the step's own."""

    env: tuple[str, ...] = ()
    """Names of variables; their values are looked up where a shard runs."""
    packages: tuple[str, ...] = ()
    """Requirements beyond the environment."""


@dataclass(frozen=True, kw_only=True)
class _StepProcess:
    allocation: JobAllocation | None = None
    requirements: ShardRequirements = field(default_factory=ShardRequirements)


_current = _StepProcess()
"""Module-level, as a process runs one step at a time, and all threads of the step see it."""


@contextmanager
def reserve(allocation: JobAllocation | None, requirements: ShardRequirements | None = None) -> Iterator[None]:
    """Set what this process reserves and its shards require while the block runs.

    Enter it before the step's modules are imported, as they may import Ray. Raises RuntimeError if the process has an
    allocation already.
    """
    global _current
    if _current.allocation is not None:
        raise RuntimeError(
            f"This process has {_current.allocation!r} for a step already. Run one step at a time in a process."
        )
    if allocation is not None:
        os.environ.update(RAY_OUTPUT_VARIABLES)
    before = _current
    _current = _StepProcess(allocation=allocation, requirements=requirements or ShardRequirements())
    try:
        yield
    finally:
        _current = before


def current_allocation() -> JobAllocation | None:
    """Return what this process reserves; None if its step is not a job, and in the processes of shards."""
    return _current.allocation


def shard_requirements() -> ShardRequirements:
    """Return what the shards of this process's step require."""
    return _current.requirements
