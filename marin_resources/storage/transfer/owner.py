"""Who this process is, told so that another process can see whether it is alive."""

from __future__ import annotations

import os
import uuid
from functools import lru_cache
from pathlib import Path

from marin_resources.storage.transfer.ledger import Owner

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = "/proc/self/ns/pid"


def this_process() -> Owner:
    return _process(os.getpid())  # by pid: a fork is another


def is_dead(owner: Owner) -> bool:
    """Whether the process is known to be gone. Of another machine nothing is known."""
    if owner.machine != _machine():
        return False
    import psutil

    try:
        process = psutil.Process(owner.pid)
        return abs(process.create_time() - owner.started) > 1 or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@lru_cache(maxsize=4)
def _process(pid: int) -> Owner:
    import psutil

    started = psutil.Process(pid).create_time()
    return Owner(id=uuid.uuid4().hex, machine=_machine(), pid=pid, started=started)


@lru_cache(maxsize=1)
def _machine() -> str:
    """This boot of this machine, and within it the space in which its pids count."""
    if not BOOT_ID.exists() or not os.path.exists(PID_NAMESPACE):
        return uuid.uuid4().hex
    return f"{BOOT_ID.read_text().strip()} {os.readlink(PID_NAMESPACE)}"
