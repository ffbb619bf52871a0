"""The Ray cluster of this machine: one head that outlives the terminal, reached by MARIN_CLUSTER=local.

In: how many CPUs it may use. Out: a LocalCluster with the dashboard's address and the file of its token. Two callers at
once get one cluster, and only its own processes are ever ended.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import subprocess
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

import psutil

from marin_resources.ray_tpu.cluster.local.head import HeadEndedError, answers, await_head, free_ports, start_head
from marin_resources.ray_tpu.cluster.local.processes import end_cluster, is_alive
from marin_resources.ray_tpu.cluster.local.state import (
    LocalCluster,
    LocalClusterError,
    alone,
    forget_cluster,
    make_token,
    read_cluster,
    state_folder,
    write_cluster,
)

__all__ = ["LocalCluster", "LocalClusterError", "describe", "down", "find", "up"]

log = logging.getLogger(__name__)


def up(*, cpus: int | None = None, state: Path | None = None) -> LocalCluster:
    """Start the cluster, or find it up already. Returns when jobs can be submitted."""
    folder = state_folder(state)
    with alone(folder):
        known = read_cluster(folder)
        if known is not None and is_alive(known.pid, known.started):
            with suppress(HeadEndedError):  # it was dying
                return _up_already(known, cpus)
        if known is not None:
            log.info("the local cluster at %s is dead; what is left of it is removed", known.address)
            _remove(folder, known)
        return _start(folder, cpus if cpus is not None else os.cpu_count() or 1)


def down(*, state: Path | None = None) -> LocalCluster | None:
    """End the cluster and all that runs on it. Returns what was ended; None if there was nothing."""
    folder = state_folder(state)
    with alone(folder):
        known = read_cluster(folder)
        if known is not None:
            _remove(folder, known)
        return known


def find(*, state: Path | None = None) -> LocalCluster | None:
    """The cluster, if its head is alive."""
    known = read_cluster(state_folder(state))
    return known if known is not None and is_alive(known.pid, known.started) else None


def describe(cluster: LocalCluster) -> str:
    """Some lines for a person: where it is, and how to use it."""
    word = "answers" if answers(cluster) else "does not answer"
    return "\n".join(
        [
            f"The local cluster at {cluster.address} {word}: {cluster.cpus} CPUs, head's pid {cluster.pid}.",
            "  use it    export MARIN_CLUSTER=local",
            f"  token     {cluster.token_path}",
            f"  its log   {cluster.log_path}",
            f"  Ray's own {cluster.temp_dir}",
        ]
    )


def _up_already(known: LocalCluster, cpus: int | None) -> LocalCluster:
    if cpus is not None and cpus != known.cpus:
        raise LocalClusterError(
            f"The local cluster at {known.address!r} is up with {known.cpus} CPUs, and {cpus} are asked for. Run "
            "`marin cluster local down` first."
        )
    await_head(known)  # who started it may have been killed meanwhile
    log.info("the local cluster is up already at %s", known.address)
    return known


def _start(folder: Path, cpus: int) -> LocalCluster:
    gcs_port, dashboard_port, client_port = free_ports(3)
    cluster = LocalCluster(
        id=uuid.uuid4().hex,
        host=os.uname().nodename,
        address=f"http://127.0.0.1:{dashboard_port}",
        cpus=cpus,
        gcs_port=gcs_port,
        dashboard_port=dashboard_port,
        client_port=client_port,
        temp_dir=_short_folder(),
        token_path=make_token(folder),
        log_path=str(folder / "cluster.log"),
    )
    Path(cluster.log_path).unlink(missing_ok=True)
    write_cluster(folder, cluster)  # before the head: one that is killed here leaves a trace to clean up by
    try:
        head = start_head(cluster)
        cluster = of_head(cluster, head)
        write_cluster(folder, cluster)
        await_head(cluster)
    except BaseException:  # also of a Ctrl-C: half a cluster is of no use
        _remove(folder, cluster)
        raise
    return cluster


def of_head(cluster: LocalCluster, head: subprocess.Popen[bytes]) -> LocalCluster:
    """The cluster, with this process as its head."""
    try:
        started = psutil.Process(head.pid).create_time()
    except psutil.NoSuchProcess:  # it has ended, which who waits for it will tell
        return cluster
    return dataclasses.replace(cluster, pid=head.pid, started=started)


def _remove(folder: Path, cluster: LocalCluster) -> None:
    end_cluster(cluster)
    shutil.rmtree(cluster.temp_dir, ignore_errors=True)  # the kernel still has files of who just died
    forget_cluster(folder)


def _short_folder() -> str:
    """Ray puts sockets there, whose paths may have 107 bytes, and adds 70 of its own."""
    return tempfile.mkdtemp(prefix="marin-", dir="/tmp" if os.path.isdir("/tmp") else None)
