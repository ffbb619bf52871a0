"""A process by host, number and start time: a later process with the same number has another start time.

Job notes and Dagster runs hold it as text. `storage/transfer/owner.py` identifies a process more strictly, by the boot
and the PID namespace: after a reboot, or in another container of the host, it leaves the question to the heartbeat of a
reservation. A job note has no heartbeat, so here the host's name alone decides.
"""

from __future__ import annotations

import getpass
import os
import resource
import time


def this_process() -> str:
    """This process, as "host/pid/start time in seconds since 1970"."""
    return f"{os.uname().nodename}/{os.getpid()}/{_start_text(os.getpid())}"


def process_is_gone(process: str) -> bool:
    """Whether a process, as `this_process` returned it, has ended. False on another host: it cannot be observed."""
    host, pid, started = process.split("/")
    return host == os.uname().nodename and _start_text(int(pid)) != started


def pid_here(process: str) -> int | None:
    """The number of a process, as `this_process` returned it; None if it has ended, or is on another host."""
    host, pid, started = process.split("/")
    return int(pid) if host == os.uname().nodename and _start_text(int(pid)) == started else None


def began_s() -> float:
    """Start time of this process, in seconds since 1970."""
    import psutil

    began = psutil.Process().create_time()
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return began
    since_boot_s = began - psutil.boot_time()  # exact to 0.01 s on Linux; the boot time only to 1 s
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot_s)


def cpu_seconds() -> float:
    """CPU seconds of this process until now, and of its children that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def user_name() -> str | None:
    """Name of the user of this process; None for a container's user without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def start_time_s(pid: int) -> float | None:
    """Start time of a process of this machine, in seconds since 1970; None if it has ended, or is a zombie."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def _start_text(pid: int) -> str | None:
    started_s = start_time_s(pid)
    return None if started_s is None else f"{started_s:.2f}"
