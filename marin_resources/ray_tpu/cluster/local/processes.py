"""Which processes of this machine belong to a local cluster, and how they end.

Not by name: other clusters of this machine have processes of the same names. Each process of a cluster has its id in
the environment; Ray's agents and workers write their titles over theirs, and are known by the log that they write to,
in the cluster's own folder. Whatever such a process has started belongs to the cluster too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from marin_resources.ray_tpu.cluster.local.state import LocalCluster, LocalClusterError

MARK = "MARIN_LOCAL_CLUSTER"
END_TIMEOUT_S = 20.0


def is_alive(pid: int | None, started: float | None) -> bool:
    """Whether the process that began at `started` still runs."""
    if pid is None or started is None:
        return False
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def processes_of(cluster: LocalCluster) -> list[psutil.Process]:
    """Those that run now, with all that they have started."""
    return with_children(process for process in psutil.process_iter() if _belongs(process, cluster))


def with_children(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    found: dict[int, psutil.Process] = {}
    for process in processes:
        try:
            found.update({each.pid: each for each in [process, *process.children(recursive=True)]})
        except psutil.NoSuchProcess:
            continue
    return [process for pid, process in found.items() if pid != os.getpid()]


def end_cluster(cluster: LocalCluster) -> None:
    """Kill them all. What a dying one has started in the meantime is found by looking again."""
    give_up = time.monotonic() + END_TIMEOUT_S
    while left := processes_of(cluster):
        if time.monotonic() > give_up:
            raise LocalClusterError(
                f"The local cluster at {cluster.address!r} has processes that cannot be killed: "
                f"{sorted(process.pid for process in left)}. Look at them with ps, then run this again."
            )
        kill(left)


def kill(processes: list[psutil.Process]) -> None:
    """Kill, and wait until they are gone. One of another user is left, and found again by who looks."""
    for process in processes:
        try:
            process.kill()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    psutil.wait_procs(processes, timeout=2)


def _belongs(process: psutil.Process, cluster: LocalCluster) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:  # has ended; its parent has not looked yet
            return False
        return process.environ().get(MARK) == cluster.id or _writes_into(process, cluster.temp_dir)
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # another user's is not ours
        return False


def _writes_into(process: psutil.Process, folder: str) -> bool:
    """Only writing counts: a `tail -f` of the user's reads there."""
    inside = str(Path(folder)) + os.sep
    return any(file.path.startswith(inside) and getattr(file, "mode", "r") != "r" for file in process.open_files())
