"""The head of a local cluster: `ray start --head`, in a session of its own, on ports that nobody else uses.

Tokens are on, whatever the environment says, and the dashboard listens to this machine alone. Ray is not imported here:
that would take a second and 100 MB of a process that only starts another.
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

from marin_resources.ray_tpu.cluster.local.processes import MARK, is_alive
from marin_resources.ray_tpu.cluster.local.state import LocalCluster, LocalClusterError

OBJECT_STORE_BYTES = 80_000_000
"""Ray's smallest. Data passes through the filesystem, never through Ray."""
RECONNECT_TIMEOUT_S = 600
"""How long a node waits for its head. Ray's minute is shorter than the restart of a machine."""
START_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 5.0
POLL_S = 0.1
PORTS = range(24_000, 32_000)
"""Below those that the kernel gives to whoever connects, so a head that restarts finds its own free."""
LOG_LINES = 15


class HeadEndedError(LocalClusterError):
    """It ended before jobs could be submitted."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on. By chance, so that two who look at the same moment find different ones."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise LocalClusterError(f"No {count} ports between {PORTS.start} and {PORTS.stop} are free on this machine.")


def start_head(cluster: LocalCluster) -> subprocess.Popen[bytes]:
    return start_ray(
        cluster,
        "--head",
        f"--port={cluster.gcs_port}",
        "--dashboard-host=127.0.0.1",
        f"--dashboard-port={cluster.dashboard_port}",
        f"--ray-client-server-port={cluster.client_port}",
        f"--temp-dir={cluster.temp_dir}",
        f"--num-cpus={cluster.cpus}",
        "--no-monitor",  # of an autoscaler, which this machine has none of
    )


def start_ray(cluster: LocalCluster, *words: str) -> subprocess.Popen[bytes]:
    """`ray start` with these words: a head, or a node of one. It stays when this process ends."""
    ray = Path(sys.executable).with_name("ray")
    if not ray.exists():
        raise LocalClusterError(f"There is no {str(ray)!r}. Install Ray beside this Python: uv sync.")
    always = [
        "--block",
        "--disable-usage-stats",
        "--log-style=record",
        "--log-color=false",
        f"--object-store-memory={OBJECT_STORE_BYTES}",
    ]
    agents = ["--dashboard-agent-listen-port=0", "--dashboard-agent-grpc-port=0"]  # 0: any that is free
    with open(cluster.log_path, "ab") as log:
        return subprocess.Popen(
            [sys.executable, str(ray), "start", *always, *agents, *words],
            env=_environment(cluster, os.environ),
            cwd=cluster.temp_dir,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def await_head(cluster: LocalCluster) -> None:
    """Return when jobs can be submitted. Raises HeadEndedError, or LocalClusterError if it takes too long."""
    give_up = time.monotonic() + START_TIMEOUT_S
    while not answers(cluster):
        if not is_alive(cluster.pid, cluster.started):
            raise HeadEndedError(
                f"The head of the local cluster ended while it started. Its log, {cluster.log_path!r}, ends with:\n"
                f"{log_tail(cluster)}"
            )
        if time.monotonic() > give_up:
            raise LocalClusterError(
                f"The local cluster at {cluster.address!r} did not answer within {START_TIMEOUT_S:.0f} s. Run `marin "
                f"cluster local down`, then try again. Its log, {cluster.log_path!r}, ends with:\n{log_tail(cluster)}"
            )
        time.sleep(POLL_S)


def answers(cluster: LocalCluster) -> bool:
    """Whether jobs can be submitted: the dashboard answers, and knows a node that one can run on."""
    return nodes_alive(cluster) > 0


def nodes_alive(cluster: LocalCluster) -> int:
    """How many nodes the dashboard knows; 0 if it does not answer."""
    token = Path(cluster.token_path).read_text()
    request = urllib.request.Request(
        f"{cluster.address}/api/v0/nodes?limit=10000", headers={"Authorization": f"Bearer {token}"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through HTTP_PROXY
    try:
        with direct.open(request, timeout=ANSWER_TIMEOUT_S) as answer:
            nodes = json.load(answer)["data"]["result"]["result"]
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):  # it is not up, or not yet whole
        return 0
    return sum(node["state"] == "ALIVE" for node in nodes)


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
        MARK: cluster.id,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)]),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": cluster.token_path,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_gcs_rpc_server_reconnect_timeout_s": str(RECONNECT_TIMEOUT_S),
        "DASHBOARD_METRIC_PORT": "0",  # Ray's own is the same for every cluster of a machine
    }
