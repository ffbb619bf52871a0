"""Slices of TPU pods that this machine pretends to have, to rehearse on a laptop what happens to real ones.

Each host is a node of the local cluster: a raylet of its own with the labels and resources that Ray gives to the host
of a real slice. Only the chips are missing: jax finds the CPU there. A host can be killed like a machine.

MARIN_FAKE_TPU=1   set on these nodes, so that a step may run there without chips
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence

import psutil

from marin_resources.hardware.resources import slice_type
from marin_resources.ray_tpu.cluster.local.head import (
    POLL_S,
    START_TIMEOUT_S,
    STARTS,
    TIMED_OUT,
    log_tail,
    nodes,
    nodes_alive,
    run_ray,
    start_ray,
)
from marin_resources.ray_tpu.cluster.local.processes import is_alive, kill, with_children
from marin_resources.ray_tpu.cluster.local.state import FakeHost, LocalCluster, LocalClusterError
from marin_resources.ray_tpu.cluster.settings import FAKE_VARIABLE
from marin_resources.ray_tpu.slices.bundles import SLICE, WORKER


class _HostTimedOutError(RuntimeError):
    """Ray gave the host's daemon 30 s, and this machine took longer."""


def names_of(kinds: Sequence[str]) -> dict[str, str]:
    """Name of a fake slice -> its type, for these types: "fake-v4-16-0". Raises ResourceError for an unknown type."""
    names = {}
    for number, kind in enumerate(kinds):
        type_name = slice_type(kind).kind
        names[f"fake-{type_name}-{kinds[:number].count(kind)}"] = type_name
    return names


def start_slice(cluster: LocalCluster, name: str, kind: str) -> tuple[FakeHost, ...]:
    """Start all hosts of a fake slice; return when the cluster knows them. Raises LocalClusterError."""
    for start in range(1, STARTS + 1):
        try:
            return _start(cluster, name, kind)
        except _HostTimedOutError as error:
            if start == STARTS:
                raise LocalClusterError(str(error)) from None
    raise AssertionError


def kill_slice(hosts: Sequence[FakeHost]) -> None:
    """Kill hosts with all their processes, without a notice: as a preemption does."""
    for host in hosts:
        _kill(host)


def drain_slice(cluster: LocalCluster, hosts: Sequence[FakeHost], notice_s: float) -> None:
    """Notify Ray that these hosts are gone in so many seconds, as the notice of a cloud does."""
    ids = {(node["labels"].get(SLICE), node["labels"].get(WORKER)): node["node_id"] for node in nodes(cluster)}
    for host in hosts:
        run_ray(
            cluster,
            "drain-node",
            f"--address=127.0.0.1:{cluster.gcs_port}",
            f"--node-id={ids[host.slice, str(host.worker)]}",
            "--reason=DRAIN_NODE_REASON_PREEMPTION",
            "--reason-message=a rehearsed preemption",
            f"--deadline-remaining-seconds={math.ceil(notice_s)}",
        )


def is_up(host: FakeHost) -> bool:
    """Whether the process of the host is alive."""
    return is_alive(host.pid, host.started)


def _start(cluster: LocalCluster, name: str, kind: str) -> tuple[FakeHost, ...]:
    """Start the hosts, one after the other: Ray gives the daemons of each half a minute."""
    hosts: list[FakeHost] = []
    try:
        for worker in range(slice_type(kind).hosts):
            before = nodes_alive(cluster)
            process = _start_host(cluster, name, kind, worker)
            hosts.append(FakeHost(slice=name, kind=kind, worker=worker, pid=process.pid, started=_began_s(process.pid)))
            _await_host(cluster, name, process, before)
    except BaseException:
        kill_slice(hosts)
        raise
    return tuple(hosts)


def _await_host(cluster: LocalCluster, name: str, process: subprocess.Popen[bytes], before: Collection[str]) -> None:
    """Wait until the cluster knows a node that it did not before. Raises _HostTimedOutError and LocalClusterError."""
    until_s = time.monotonic() + START_TIMEOUT_S
    while not nodes_alive(cluster) - frozenset(before):
        if time.monotonic() > until_s or process.poll() is not None:
            tail = log_tail(cluster)
            error = _HostTimedOutError if TIMED_OUT in tail else LocalClusterError
            raise error(f"The fake slice {name!r} did not join {cluster.address}. The log ends with:\n{tail}")
        time.sleep(POLL_S)


def _start_host(cluster: LocalCluster, name: str, kind: str, worker: int) -> subprocess.Popen[bytes]:
    type_of_slice = slice_type(kind)
    environ = {
        "TPU_NAME": name,
        "TPU_WORKER_ID": str(worker),
        "TPU_ACCELERATOR_TYPE": type_of_slice.kind,
        "TPU_TOPOLOGY": type_of_slice.topology,
        FAKE_VARIABLE: "1",
    }
    # A folder of its own, as machines have: nodes that share one choose the same sockets, and remove each other's code.
    folder = tempfile.mkdtemp(prefix="h", dir=cluster.temp_dir)
    return start_ray(
        cluster,
        f"--temp-dir={folder}",
        f"--address=127.0.0.1:{cluster.gcs_port}",
        f"--num-cpus={cluster.cpus}",
        f"--resources={json.dumps({'TPU': type_of_slice.chips_per_host})}",
        environ=environ,
    )


def _began_s(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:  # it has ended: the caller finds out
        return 0.0


def _kill(host: FakeHost) -> None:
    if is_up(host):
        kill(with_children([psutil.Process(host.pid)]))
