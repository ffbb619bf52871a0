"""The Ray cluster of this machine: one head that outlives the terminal, selected by MARIN_CLUSTER=local.

In: the number of CPUs. Out: a LocalCluster with the dashboard's address and the path of the token. Two callers at once
get one cluster. Only the cluster's own processes are ended.
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

from marin_resources.ray_tpu.cluster.local.head import (
    STARTS,
    HeadEndedError,
    HeadTimedOutError,
    answers,
    await_head,
    free_ports,
    start_head,
)
from marin_resources.ray_tpu.cluster.local.processes import end_cluster, is_alive
from marin_resources.ray_tpu.cluster.local.state import (
    LocalCluster,
    LocalClusterError,
    delete_record,
    exclusive,
    make_token,
    read_cluster,
    state_folder,
    write_cluster,
)

__all__ = ["LocalCluster", "LocalClusterError", "describe", "down", "find", "up"]

log = logging.getLogger(__name__)


def up(*, cpus: int | None = None, state: Path | None = None) -> LocalCluster:
    """Start the cluster unless it is up already. Return when jobs can be submitted."""
    folder = state_folder(state)
    with exclusive(folder):
        known = read_cluster(folder)
        if known is not None and is_alive(known.pid, known.started):
            with suppress(HeadEndedError):  # its head was ending
                return _up_already(known, cpus)
        if known is not None:
            log.info("the local cluster at %s is dead; its remains are removed", known.address)
            _remove(folder, known)
        wanted = cpus if cpus is not None else os.cpu_count() or 1
        for start in range(1, STARTS):
            try:
                return _start(folder, wanted)
            except HeadTimedOutError:
                log.warning("Ray did not start in its 30 s (start %d of %d): this machine is busy", start, STARTS)
        return _start(folder, wanted)


def down(*, state: Path | None = None) -> LocalCluster | None:
    """End the cluster and all its processes. Return it; None if none was up."""
    folder = state_folder(state)
    with exclusive(folder):
        known = read_cluster(folder)
        if known is not None:
            _remove(folder, known)
        return known


def find(*, state: Path | None = None) -> LocalCluster | None:
    """The cluster; None if its head is not alive."""
    known = read_cluster(state_folder(state))
    return known if known is not None and is_alive(known.pid, known.started) else None


def describe(cluster: LocalCluster) -> str:
    """Lines for a person: the cluster's address, and how to use it."""
    state = "answers" if answers(cluster) else "does not answer"
    return "\n".join(
        [
            f"The local cluster at {cluster.address} {state}: {cluster.cpus} CPUs, head's pid {cluster.pid}.",
            "  use it    export MARIN_CLUSTER=local",
            f"  token     {cluster.token_path}",
            f"  its log   {cluster.log_path}",
            f"  Ray's own {cluster.temp_dir}",
        ]
    )


def _up_already(known: LocalCluster, cpus: int | None) -> LocalCluster:
    if cpus is not None and cpus != known.cpus:
        raise LocalClusterError(
            f"The local cluster at {known.address!r} is up with {known.cpus} CPUs, and {cpus} are requested. Run "
            "`marin cluster local down` first."
        )
    await_head(known)  # the process that started it may have been killed
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
    write_cluster(folder, cluster)  # before the head, so that the next call cleans up if we are killed here
    try:
        head = start_head(cluster)
        cluster = with_head(cluster, head)
        write_cluster(folder, cluster)
        await_head(cluster)
    except BaseException:  # also on Ctrl-C: a partial cluster is useless
        _remove(folder, cluster)
        raise
    return cluster


def with_head(cluster: LocalCluster, head: subprocess.Popen[bytes]) -> LocalCluster:
    """The cluster with this process as its head."""
    try:
        started = psutil.Process(head.pid).create_time()
    except psutil.NoSuchProcess:  # it has ended: await_head reports that
        return cluster
    return dataclasses.replace(cluster, pid=head.pid, started=started)


def _remove(folder: Path, cluster: LocalCluster) -> None:
    end_cluster(cluster)
    shutil.rmtree(cluster.temp_dir, ignore_errors=True)  # files of killed processes may vanish late
    delete_record(folder)


def _short_folder() -> str:
    """A folder with a short path: the path of a socket has 107 bytes at most, of which Ray's own part takes 70."""
    return tempfile.mkdtemp(prefix="marin-", dir="/tmp" if os.path.isdir("/tmp") else None)
