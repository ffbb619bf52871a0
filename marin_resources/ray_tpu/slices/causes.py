"""Why a try on a slice failed, from the ends of its hosts and what Ray knows of their nodes.

more slices    the step may have more of them than the try had (`scale_up.py`)
preempted      a node of the slice died, or is being drained
lost worker    a process was killed, and its node lives
bad host       jax, torch or libtpu could not use the devices of a host
hang           a host reported no step for too long
out of memory  Ray or the error of the function reported it
error          the function raised, for reasons of its own
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from marin_resources.ray_tpu.slices.host_exit import End, Hung, Lost, Raised, Returned, first_line
from marin_resources.ray_tpu.slices.host_faults import HostFault
from marin_resources.ray_tpu.slices.reservation import Host


class Cause(enum.StrEnum):
    PREEMPTED = "preempted"
    LOST_WORKER = "lost worker"
    BAD_HOST = "bad host"
    HANG = "hang"
    MORE_SLICES = "more slices"
    OUT_OF_MEMORY = "out of memory"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a try failed."""

    cause: Cause
    host: Host
    """The first host that has this cause."""
    error: str
    """One sentence."""
    traceback: str = ""
    crash: str = ""
    """A phrase, how and where the process of the host died by its own fault; empty if that is not known."""
    avoid: tuple[Host, ...] = ()
    """The hosts that no step is to be placed on for a while."""


OF_FAULT = {HostFault.DEVICES: Cause.BAD_HOST, HostFault.MEMORY: Cause.OUT_OF_MEMORY}


def failure_of(ends: Sequence[End], is_alive: Callable[[str], bool]) -> Failure | None:
    """The failure of the try; None if the function has returned on all hosts. `is_alive` takes the id of a node.

    The ends are in the order in which they came: of hosts that raised, the first one's error counts.

    A lost host explains the errors of the others: they were in a collective operation with it.
    """
    lost = [end for end in ends if isinstance(end, Lost)]
    raised = [end for end in ends if isinstance(end, Raised)]
    for gone in lost:
        if _out_of_memory(gone.error):
            return Failure(cause=Cause.OUT_OF_MEMORY, host=gone.host, error=first_line(gone.error))
    for end in ends:
        if _node_died(end) or (not isinstance(end, Returned) and not is_alive(end.host.node_id)):
            return Failure(cause=Cause.PREEMPTED, host=end.host, error="its node died")
    if hung := [end for end in ends if isinstance(end, Hung)]:
        return _hang(hung)
    for gone in lost:
        return Failure(cause=Cause.LOST_WORKER, host=gone.host, error=f"its process died ({first_line(gone.error)})")
    for fault, cause in OF_FAULT.items():
        for report in raised:
            if report.fault is fault:
                avoid = (report.host,) if cause is Cause.BAD_HOST else ()
                return Failure(
                    cause=cause, host=report.host, error=report.error, traceback=report.traceback, avoid=avoid
                )
    for report in raised:
        return Failure(cause=Cause.ERROR, host=report.host, error=report.error, traceback=report.traceback)
    return None


def _hang(hung: Sequence[Hung]) -> Failure:
    """Those that are the fewest steps on hold up the others; where all are equal, any of them may."""
    fewest = min(-1 if end.step is None else end.step for end in hung)
    last = [end for end in hung if (-1 if end.step is None else end.step) == fewest]
    return Failure(cause=Cause.HANG, host=last[0].host, error=last[0].error, avoid=tuple(end.host for end in last))


def _node_died(end: End) -> bool:
    """Whether Ray could reach neither the process nor its node. The head knows of the death half a minute later."""
    from ray.exceptions import LocalRayletDiedError, NodeDiedError  # late, for its weight

    return isinstance(end, Lost) and isinstance(end.error, NodeDiedError | LocalRayletDiedError)


def _out_of_memory(error: Exception) -> bool:
    from ray.exceptions import OutOfMemoryError  # late, for its weight

    return isinstance(error, OutOfMemoryError)
