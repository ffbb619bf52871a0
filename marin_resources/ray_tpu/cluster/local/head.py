"""The head of a local cluster: `ray start --head`, in a session of its own, on free ports.

Tokens are required whatever the environment sets, and all ports are on loopback only. Ray is not imported: that would
cost 1 s and 100 MB in a process that only starts another.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marin_resources.host.private_folder import private_folder
from marin_resources.ray_tpu import ray_internals
from marin_resources.ray_tpu.cluster.local.processes import ID_VARIABLE, is_alive
from marin_resources.ray_tpu.cluster.local.state import LocalCluster, LocalClusterError
from marin_resources.ray_tpu.ray_internals import ON_LOOPBACK

OBJECT_STORE_BYTES = 80_000_000
"""Ray's smallest. Data passes through the filesystem, never through Ray."""
RECONNECT_TIMEOUT_S = 600
"""Time limit of a node for its head. Ray's default of 60 s is shorter than the restart of a machine."""
AGENT_TIMEOUT_MS = 120_000
"""Time limit of a node for its agent. After Ray's default of 30 s, which a busy machine exceeds, it kills itself."""
START_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 5.0
POLL_S = 0.1
PORTS = range(24_000, 32_000)
"""Below the kernel's ephemeral ports, so that a restarted head finds its own ports free."""
LOG_LINES = 15
STARTS = 4
TIMED_OUT = "timed out during startup"
"""In Ray's log."""


class HeadEndedError(LocalClusterError):
    """The head ended before jobs could be submitted."""


class HeadTimedOutError(HeadEndedError):
    """Ray gave its own daemons 30 s, and this machine took longer: another start may do it."""


def free_ports(count: int) -> list[int]:
    """Unused ports, chosen at random, so that two callers at the same moment get different ones."""
    ports: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise LocalClusterError(f"No {count} ports between {PORTS.start} and {PORTS.stop} are free on this machine.")


def start_head(cluster: LocalCluster) -> subprocess.Popen[bytes]:
    return start_ray(
        cluster,
        "--head",
        f"--port={cluster.gcs_port}",
        "--dashboard-host=127.0.0.1",
        f"--dashboard-port={cluster.dashboard_port}",
        f"--ray-client-server-port={cluster.client_port}",
        f"--temp-dir={private_folder(cluster.temp_dir)}",
        f"--num-cpus={cluster.cpus}",
        "--no-monitor",  # this machine has no autoscaler
    )


def start_ray(
    cluster: LocalCluster, *arguments: str, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Run `ray start` with these arguments, and further variables: a head or a node. It outlives this process."""
    always = [
        "--block",
        "--disable-usage-stats",
        "--log-style=record",
        "--log-color=false",
        f"--object-store-memory={OBJECT_STORE_BYTES}",
    ]
    ray = [str(_ray())] if "--head" in arguments else ["-P", ray_internals.__file__]
    agents = ["--dashboard-agent-listen-port=0", "--dashboard-agent-grpc-port=0"]  # 0: any free port
    with open(cluster.log_path, "ab") as log:
        return subprocess.Popen(
            [sys.executable, *ray, "start", *always, *agents, *arguments],
            env=_environment(cluster, {**os.environ, **(environ or {})}),
            cwd=cluster.temp_dir,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _ray() -> Path:
    ray = Path(sys.executable).with_name("ray")
    if not ray.exists():
        raise LocalClusterError(f"The command {str(ray)!r} does not exist. Install Ray beside this Python: uv sync.")
    return ray


def await_head(cluster: LocalCluster) -> None:
    """Wait until jobs can be submitted. Raise HeadEndedError, or LocalClusterError after 120 s."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not answers(cluster):
        if not is_alive(cluster.pid, cluster.started):
            tail = log_tail(cluster)
            kind = HeadTimedOutError if TIMED_OUT in tail else HeadEndedError
            sentence = "The head of the local cluster ended while it started"
            raise kind(f"{sentence}. Its log, {cluster.log_path!r}, ends with:\n{tail}")
        if time.monotonic() > deadline:
            raise LocalClusterError(
                f"The local cluster at {cluster.address!r} did not answer within {START_TIMEOUT_S:.0f} s. Run `marin "
                f"cluster local down`, then try again. Its log, {cluster.log_path!r}, ends with:\n{log_tail(cluster)}"
            )
        time.sleep(POLL_S)


def answers(cluster: LocalCluster) -> bool:
    """Whether jobs can be submitted: the dashboard answers, and knows a node."""
    return bool(nodes_alive(cluster))


def nodes_alive(cluster: LocalCluster) -> frozenset[str]:
    """The ids of the nodes that the dashboard takes for alive; none if it does not answer.

    Ray takes half a minute to know of a node's death.
    """
    return frozenset(node["node_id"] for node in nodes(cluster))


def nodes(cluster: LocalCluster) -> list[dict[str, Any]]:
    """Those nodes as the dashboard describes them, with their labels."""
    token = Path(cluster.token_path).read_text()
    request = urllib.request.Request(
        f"{cluster.address}/api/v0/nodes?limit=10000&detail=1", headers={"Authorization": f"Bearer {token}"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through HTTP_PROXY
    try:
        with direct.open(request, timeout=ANSWER_TIMEOUT_S) as response:
            listed = json.load(response)["data"]["result"]["result"]
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):  # not up, or not complete yet
        return []
    return [node for node in listed if node["state"] == "ALIVE"]


def run_ray(cluster: LocalCluster, *arguments: str) -> None:
    """Run a command of Ray at the cluster to its end. Raises LocalClusterError with what it printed."""
    ended = subprocess.run(
        [sys.executable, str(_ray()), *arguments],
        env=_environment(cluster, os.environ),
        cwd=cluster.temp_dir,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise LocalClusterError(f"`ray {arguments[0]}` failed: {ended.stdout.strip()}")


def log_tail(cluster: LocalCluster) -> str:
    try:
        lines = Path(cluster.log_path).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join(f"  {line}" for line in lines[-LOG_LINES:])


def _environment(cluster: LocalCluster, environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if name not in ("RAY_ADDRESS", "RAY_AUTH_TOKEN")}
    return {
        **kept,
        **ON_LOOPBACK,
        ID_VARIABLE: cluster.id,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)]),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": cluster.token_path,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_agent_register_timeout_ms": str(AGENT_TIMEOUT_MS),
        "RAY_gcs_rpc_server_reconnect_timeout_s": str(RECONNECT_TIMEOUT_S),
        "DASHBOARD_METRIC_PORT": "0",  # Ray's default is the same for all clusters of a machine
    }
