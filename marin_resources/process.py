"""A process by host, number and time of its start, so that it can be told from a later one of the same number."""

from __future__ import annotations

import getpass
import os
import time


def this_process() -> str:
    """This process, as "host/pid/seconds since 1970"."""
    return f"{os.uname().nodename}/{os.getpid()}/{_started(os.getpid())}"


def process_is_gone(process: str) -> bool:
    """Whether the process that `this_process` told has ended. False for another machine's: that cannot be seen."""
    host, pid, started = process.split("/")
    return host == os.uname().nodename and _started(int(pid)) != started


def began_s() -> float:
    """When this process began, in seconds since 1970."""
    import psutil

    began = psutil.Process().create_time()
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return began
    since_boot_s = began - psutil.boot_time()  # Linux knows this to 0.01 s, and when it was booted to a second
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot_s)


def user_name() -> str | None:
    """Who runs this process; None for a container's user without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _started(pid: int) -> str | None:
    """When the process began; None if there is none, or only its zombie."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.NoSuchProcess:
        return None
