"""A companion of a process that has started a Ray: when the process ends, it kills the remaining processes of that Ray.

Ray's daemons end with the process that started them, and its agents with their daemon: mostly, since an agent that is
starting, or paused, when the daemon is killed does not notice it and lives on for ever.

In:  stdin, which ends with the process or when it has shut Ray down.   Out: no process of that Ray.
"""

from __future__ import annotations

import contextlib
import os
import select
import time

import psutil

GRACE_S = 5.0
"""Time that Ray's processes have to end by themselves."""
WATCH_S = 30.0
"""Time limit while processes remain: one that was just starting opens its log later."""
POLL_S = 1.0


def main(owner: str, session_folder: str) -> None:
    """`owner` is the id of the process, `session_folder` the folder of its Ray's session."""
    while not select.select([0], [], [], POLL_S)[0]:
        if os.getppid() != int(owner):  # its forked children may hold the pipe
            break
    ended_s = time.monotonic()
    while (processes := rays_processes(session_folder, int(owner))) and time.monotonic() - ended_s < WATCH_S:
        if time.monotonic() - ended_s > GRACE_S:
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        time.sleep(POLL_S)


def rays_processes(session_folder: str, owner: int) -> list[psutil.Process]:
    """Ray's own processes that have a file of the session open, but for its owner. A reader of its logs is none."""
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            is_ray = any("ray::" in word or "/ray/" in word for word in process.cmdline())
            if is_ray and process.pid != owner and _has_open(process, session_folder):
                processes.append(process)
    return processes


def _has_open(process: psutil.Process, folder: str) -> bool:
    return any(file.path.startswith(f"{folder}/") for file in process.open_files())
