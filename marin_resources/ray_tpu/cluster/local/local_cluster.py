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
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from marin_resources.ray_tpu.cluster.local.fake_slices import drain_slice, is_up, kill_slice, names_of, start_slice
from marin_resources.ray_tpu.cluster.local.head import (
    POLL_S,
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
    FakeHost,
    LocalCluster,
    LocalClusterError,
    delete_record,
    exclusive,
    make_token,
    read_cluster,
    state_folder,
    write_cluster,
)

__all__ = ["LocalCluster", "LocalClusterError", "describe", "down", "find", "preempt", "restart", "up"]

log = logging.getLogger(__name__)


def up(*, cpus: int | None = None, fake: Sequence[str] = (), state: Path | None = None) -> LocalCluster:
    """Start the cluster unless it is up already. Return when jobs can be submitted.

    `fake`: types of slices that it pretends to have (`fake_slices.py`). Those that are not up are started. Raises
    LocalClusterError, and ResourceError for an unknown type.
    """
    folder, names = state_folder(state), names_of(fake)
    with exclusive(folder):
        return _with_slices(folder, _up(folder, cpus), names)


def down(*, state: Path | None = None) -> LocalCluster | None:
    """End the cluster and all its processes. Return it; None if none was up."""
    folder = state_folder(state)
    with exclusive(folder):
        recorded = read_cluster(folder)
        if recorded is not None:
            _remove(folder, recorded)
        return recorded


def restart(*, state: Path | None = None) -> LocalCluster:
    """End the cluster's processes, and start a head at the same addresses with the same token, and its fake slices.

    Its jobs end. Raises LocalClusterError if none is up.
    """
    folder = state_folder(state)
    with exclusive(folder):
        recorded = read_cluster(folder)
        if recorded is None:
            raise LocalClusterError("No local cluster is up on this machine. Start it: marin cluster local up")
        kinds = {host.slice: host.kind for host in recorded.fake_hosts}
        end_cluster(recorded)
        shutil.rmtree(recorded.temp_dir, ignore_errors=True)
        cluster = dataclasses.replace(recorded, temp_dir=_short_folder(), fake_hosts=(), pid=None, started=None)
        return _with_slices(folder, _start_again(folder, cluster), kinds)


def _start_again(folder: Path, cluster: LocalCluster) -> LocalCluster:
    """Start the head of a record; one that is too slow several times, as the first head. The record is kept."""
    for start in range(1, STARTS + 1):
        write_cluster(folder, cluster)
        cluster = with_head(cluster, start_head(cluster))
        write_cluster(folder, cluster)
        try:
            await_head(cluster)
            return cluster
        except HeadTimedOutError:
            end_cluster(cluster)
            if start == STARTS:
                raise
            log.warning("Ray did not start in its 30 s (start %d of %d): this machine is busy", start, STARTS)
    raise AssertionError("the last start has raised")


def find(*, state: Path | None = None) -> LocalCluster | None:
    """The cluster; None if its head is not alive."""
    recorded = read_cluster(state_folder(state))
    return recorded if recorded is not None and is_alive(recorded.pid, recorded.started) else None


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
            *(_describe_slice(cluster, name) for name in sorted({host.slice for host in cluster.fake_hosts})),
        ]
    )


def _describe_slice(cluster: LocalCluster, name: str) -> str:
    hosts = [host for host in cluster.fake_hosts if host.slice == name]
    return f"  slice     {name}: a fake {hosts[0].kind}, {sum(map(is_up, hosts))} of its {len(hosts)} hosts are up"


def _up(folder: Path, cpus: int | None) -> LocalCluster:
    recorded = read_cluster(folder)
    if recorded is not None and is_alive(recorded.pid, recorded.started):
        with suppress(HeadEndedError):  # its head was ending
            return _up_already(recorded, cpus)
    if recorded is not None:
        log.info("the local cluster at %s is dead; its remains are removed", recorded.address)
        _remove(folder, recorded)
    cpu_count = cpus if cpus is not None else os.cpu_count() or 1
    for start in range(1, STARTS):
        try:
            return _start(folder, cpu_count)
        except HeadTimedOutError:
            log.warning("Ray did not start in its 30 s (start %d of %d): this machine is busy", start, STARTS)
    return _start(folder, cpu_count)


def _with_slices(folder: Path, cluster: LocalCluster, names: Mapping[str, str]) -> LocalCluster:
    """Start the fake slices of these names and types that are not whole."""
    for name, kind in names.items():
        slice_hosts = [host for host in cluster.fake_hosts if host.slice == name]
        if slice_hosts and all(map(is_up, slice_hosts)):
            continue
        kill_slice(slice_hosts)
        log.info("starting the fake slice %s", name)
        others = tuple(host for host in cluster.fake_hosts if host.slice != name)
        cluster = dataclasses.replace(cluster, fake_hosts=(*others, *start_slice(cluster, name, kind)))
        write_cluster(folder, cluster)
    return cluster


def preempt(name: str, *, notice_s: float = 0, state: Path | None = None) -> tuple[FakeHost, ...]:
    """Kill all hosts of a fake slice, `notice_s` after a notice, or without one. Return them.

    Raises LocalClusterError if no such slice is up.
    """
    folder = state_folder(state)
    if notice_s:
        with exclusive(folder):
            cluster, hosts = _fake_slice(folder, name)
            drain_slice(cluster, hosts, notice_s)
        log.info("the hosts of %s are notified; they are killed in %g s", name, notice_s)
        until_s = time.monotonic() + notice_s
        while any(map(is_up, hosts)) and time.monotonic() < until_s:  # Ray ends an idle host that is drained
            time.sleep(POLL_S)
        kill_slice(hosts)
        return hosts
    with exclusive(folder):
        _, hosts = _fake_slice(folder, name)
        kill_slice(hosts)
        return hosts


def _fake_slice(folder: Path, name: str) -> tuple[LocalCluster, tuple[FakeHost, ...]]:
    """The cluster, and the hosts of the slice that are up."""
    recorded = read_cluster(folder)
    fake_hosts = recorded.fake_hosts if recorded is not None else ()
    hosts = tuple(host for host in fake_hosts if host.slice == name and is_up(host))
    if recorded is None or not hosts:
        names = sorted({repr(host.slice) for host in fake_hosts if is_up(host)})
        advice = f"It has {', '.join(names)}." if names else "Start one: marin cluster local up --fake v4-16"
        raise LocalClusterError(f"The local cluster has no fake slice {name!r} that is up. {advice}")
    return recorded, hosts


def _up_already(running: LocalCluster, cpus: int | None) -> LocalCluster:
    if cpus is not None and cpus != running.cpus:
        raise LocalClusterError(
            f"The local cluster at {running.address!r} is up with {running.cpus} CPUs, and {cpus} are requested. Run "
            "`marin cluster local down` first."
        )
    await_head(running)  # the process that started it may have been killed
    log.info("the local cluster is up already at %s", running.address)
    return running


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
