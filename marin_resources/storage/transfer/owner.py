"""The owner of a reservation: a process, identified so that another process can check whether it is alive.

The machine is its boot and PID namespace, not its name: containers that share a host's name do not see each other's
processes. `marin_resources.process` explains the weaker rule of job notes.
"""

from __future__ import annotations

import os
import uuid
from functools import lru_cache
from pathlib import Path

from marin_resources.process import start_time_s
from marin_resources.storage.transfer.ledger import Owner

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = "/proc/self/ns/pid"


def current_owner() -> Owner:
    """This process."""
    return _owner(os.getpid())  # by pid: a fork is another owner


def is_dead(owner: Owner) -> bool:
    """Whether the process is known to have ended. False on another machine: it cannot be observed."""
    if owner.machine != _machine():
        return False
    started_s = start_time_s(owner.pid)
    return started_s is None or abs(started_s - owner.started) > 1


@lru_cache(maxsize=4)
def _owner(pid: int) -> Owner:
    import psutil

    return Owner(id=uuid.uuid4().hex, machine=_machine(), pid=pid, started=psutil.Process(pid).create_time())


@lru_cache(maxsize=1)
def _machine() -> str:
    """The boot id of this machine and the PID namespace; a random id where the system has neither."""
    if not BOOT_ID.exists() or not os.path.exists(PID_NAMESPACE):
        return uuid.uuid4().hex
    return f"{BOOT_ID.read_text().strip()} {os.readlink(PID_NAMESPACE)}"
