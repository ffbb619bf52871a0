"""Check in milliseconds, before any process of Ray exists, that this machine has what a Ray cannot start without.

In:  the folder of its files; the limits, the loopback address and the free space of this machine.
Out: nothing, or one sentence. Ray itself waits 30 s or more for a daemon that is in want of these.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
from contextlib import ExitStack, suppress

from marin_resources.ray_tpu.ray_options import RayGoneError, UnmeetableError

SOCKET_PATH_BYTES = 107
"""Linux's limit for the path of a Unix socket."""
LONGEST_SOCKET = "/session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store"
"""Below the folder of Ray's files, with the largest process id."""
FREE_BYTES = 5_000_000
"""Required on the disk of its files: a start writes 0.3 MB, and a Ray whose disk is full dies minutes later."""
PORTS = 12
"""Ports that Ray listens at, beside those of its workers."""
THREADS = 160
"""Threads of a run and of its Ray with one worker on two cores, as Linux counts them as processes: 150 measured."""
SEEN_LIMIT = 8192
"""A larger limit of processes is not compared with those of the user: to count them takes 20 ms."""


def refuse_folder(folder: str) -> None:
    """Raise UnmeetableError for a folder of Ray's files in which its sockets cannot be."""
    remedy = "Set RAY_TMPDIR to a folder of your own with a short absolute path."
    if not os.path.isabs(folder):
        raise UnmeetableError(f"Ray's files would be in {folder!r}, and Ray requires an absolute path. {remedy}")
    excess = len(os.fsencode(folder + LONGEST_SOCKET)) - SOCKET_PATH_BYTES
    if excess > 0:
        raise UnmeetableError(
            f"Ray's files would be in {folder!r}, a path that is {excess} bytes too long for its sockets. {remedy}"
        )


def refuse_machine(folder: str) -> None:
    """Raise RayGoneError if Ray cannot start on this machine now. `folder`: that of its files, which exists."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < FREE_BYTES:
        raise RayGoneError(
            f"Ray does not start, as the disk of {folder!r}, where its files are, has {free_bytes / 1e6:.1f} MB free, "
            f"and it needs {FREE_BYTES / 1e6:g} MB. Free space there, or set RAY_TMPDIR to a folder on another disk."
        )
    _refuse_loopback()


def refuse_process_limit() -> None:
    """Raise RayGoneError if this user may start too few threads: neither a run nor Ray gets far then."""
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if os.geteuid() == 0 or not 0 <= limit <= SEEN_LIMIT:  # it does not hold for root; infinity is -1
        return
    used = _threads_of_user()
    if limit - used < THREADS:
        raise RayGoneError(
            f"Ray does not start, as this user may have {limit} processes and threads and has {used}, and a run takes "
            f"about {THREADS} more. Raise the limit (ulimit -u), or end other programs of this user."
        )


def _threads_of_user() -> int:
    import psutil  # late, for its weight

    threads = 0
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.uids().real == os.getuid():
                threads += process.num_threads()
    return threads


def _refuse_loopback() -> None:
    """Raise RayGoneError if processes of this machine cannot reach each other at 127.0.0.1, or no ports are left."""
    try:
        with ExitStack() as sockets:
            listeners = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(PORTS)]
            sockets.enter_context(socket.create_connection(listeners[0].getsockname(), timeout=1))
    except OSError as error:
        raise RayGoneError(
            f"Ray does not start, as its processes cannot listen at {PORTS} ports of 127.0.0.1 and connect there "
            f"({os.strerror(error.errno) if error.errno else error}). Bring the loopback interface up, or end programs "
            "that hold ports or connections."
        ) from None
