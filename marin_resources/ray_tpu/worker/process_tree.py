"""The processes that a step starts: the worker adopts them, so none escapes, and kills them when the step ends.

A process that daemonizes (it forks twice, in a session of its own) has no parent any more. On Linux its parent is then
the nearest *subreaper* above it: the worker. Elsewhere such a process is not found.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from marin_resources.ray_tpu.companion import companion_pids

PR_SET_CHILD_SUBREAPER = 36
"""Of prctl(2), Linux 3.4."""
KILL_TIMEOUT_S = 2.0
"""A process that does not end after this long cannot: it waits for a device or a network file."""
TASKS = Path("/proc/self/task")


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants() -> None:
    """Kill all descendants but companions, which end by themselves. Return when they are gone, after 2 s at most."""
    if not any(True for _ in _children()):
        return
    end_s = time.monotonic() + KILL_TIMEOUT_S
    while found := _descendants():  # again, as one may fork while they are listed
        for each in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGSTOP)
        for each in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        _, alive = psutil.wait_procs(found, timeout=max(0.0, end_s - time.monotonic()))
        if alive and time.monotonic() >= end_s:
            return


def _descendants() -> list[psutil.Process]:
    kept = _kept()
    return [each for each in psutil.Process().children(recursive=True) if each.pid not in kept]


def _children() -> Iterator[int]:
    """The processes whose parent is this one, without companions. Cheaper than a look at all processes."""
    kept = _kept()
    try:
        texts = [(task / "children").read_text() for task in TASKS.iterdir()]
    except FileNotFoundError:  # a thread that has just ended, or another system
        yield from (each.pid for each in _descendants())
        return
    yield from (int(pid) for text in texts for pid in text.split() if int(pid) not in kept)


def _kept() -> set[int]:
    """Companions, and the process by which multiprocessing removes what its users leave; it ends with this one."""
    tracker = getattr(sys.modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None)
    pid = getattr(tracker, "_pid", None)
    return companion_pids() | ({pid} if pid is not None else set()) | {os.getpid()}
