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
from collections.abc import Collection, Iterable
from pathlib import Path

import psutil

from marin_resources.ray_tpu.sidecar import sidecar_pids

PR_SET_CHILD_SUBREAPER = 36
"""Option of prctl(2), Linux 3.4."""
KILL_TIMEOUT_S = 2.0
"""A process that does not end after this long cannot: it waits for a device or a network file."""
TASKS = Path("/proc/self/task")


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> frozenset[int]:
    """The ids of the processes whose parent is this one. Cheaper than a look at all processes."""
    try:
        texts = [(task / "children").read_text() for task in TASKS.iterdir()]
    except FileNotFoundError:  # a thread that has just ended, or another system
        return frozenset(child.pid for child in psutil.Process().children())
    return frozenset(int(pid) for text in texts for pid in text.split())


def kill_descendants(but: Collection[int] = ()) -> None:
    """Kill all descendants but these children, with theirs, and companions, which end by themselves.

    Return when they are gone, after 2 s at most.
    """
    kept = {*but, *_kept()}
    end_s = time.monotonic() + KILL_TIMEOUT_S
    while (pids := children() - kept) and time.monotonic() < end_s:  # again, as one may fork meanwhile
        for pid in pids:  # before the slow look below them: a process that forks and ends is another by then
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        processes = _below(pids)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=max(0.0, end_s - time.monotonic()))


def _below(pids: Iterable[int]) -> list[psutil.Process]:
    """These processes and their descendants."""
    processes: list[psutil.Process] = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            child = psutil.Process(pid)
            processes += [child, *child.children(recursive=True)]
    return processes


def _kept() -> set[int]:
    """Companions, and the process by which multiprocessing removes what its users leave; it ends with this one."""
    tracker = getattr(sys.modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None)
    pid = getattr(tracker, "_pid", None)
    return sidecar_pids() | ({pid} if pid is not None else set())
