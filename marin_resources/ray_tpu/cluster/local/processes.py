"""Find and end the processes of a local cluster.

Names do not identify them: other clusters of this machine have processes of the same names. Each process has the
cluster's id in its environment. Ray's agents and workers overwrite theirs with their titles; they are recognised by
the log that they write to, in the cluster's own folder. Their child processes belong to the cluster too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from marin_resources.ray_tpu.cluster.local.state import LocalCluster, LocalClusterError

ID_VARIABLE = "MARIN_LOCAL_CLUSTER"
"""Environment variable with the cluster's id."""
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
    """The running processes of the cluster, with their child processes."""
    return with_children(process for process in psutil.process_iter() if _belongs(process, cluster))


def with_children(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    by_pid: dict[int, psutil.Process] = {}
    for process in processes:
        try:
            by_pid.update({member.pid: member for member in [process, *process.children(recursive=True)]})
        except psutil.NoSuchProcess:
            continue
    return [process for pid, process in by_pid.items() if pid != os.getpid()]


def end_cluster(cluster: LocalCluster) -> None:
    """Kill all processes; repeat, since a dying one may have started others. Raise LocalClusterError after 20 s."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while remaining := processes_of(cluster):
        if time.monotonic() > deadline:
            raise LocalClusterError(
                f"The local cluster at {cluster.address!r} has processes that cannot be killed: "
                f"{sorted(process.pid for process in remaining)}. Look at them with ps, then run this again."
            )
        kill(remaining)


def kill(processes: list[psutil.Process]) -> None:
    """Kill the processes, and wait up to 2 s for their end. Those of other users are left alone."""
    for process in processes:
        try:
            process.kill()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    psutil.wait_procs(processes, timeout=2)


def _belongs(process: psutil.Process, cluster: LocalCluster) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:  # ended, not yet reaped by its parent
            return False
        return process.environ().get(ID_VARIABLE) == cluster.id or _writes_into(process, cluster.temp_dir)
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # or another user's
        return False


def _writes_into(process: psutil.Process, folder: str) -> bool:
    """Readers do not count: the user's `tail -f` reads there."""
    inside = str(Path(folder)) + os.sep
    return any(file.path.startswith(inside) and getattr(file, "mode", "r") != "r" for file in process.open_files())
