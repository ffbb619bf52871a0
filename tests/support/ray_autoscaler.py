"""Ray's own autoscaler for a loopback cluster. The nodes that it adds are raylets on this machine.

with autoscaled({"CPU": 4}) as cluster:
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from ray_cluster import Cluster

HEAD_NODE, HEAD_TYPE = "f" * 56, "ray.head.default"
"""Ray's provider of fake nodes expects this id and this type of the head."""
EMPTY_LISTS = (
    "cluster_synced_files",
    "rsync_exclude",
    "rsync_filter",
    "initialization_commands",
    "setup_commands",
    "head_setup_commands",
    "worker_setup_commands",
    "head_start_ray_commands",
    "worker_start_ray_commands",
)


@contextmanager
def autoscaled(resources: Mapping[str, float], *, at_most: int = 1) -> Iterator[Cluster]:
    """A cluster of a head with one CPU, to which the autoscaler adds nodes with these resources."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_FAKE_CLUSTER", "1")
        patch.setenv("RAY_OVERRIDE_NODE_ID_FOR_TESTING", HEAD_NODE)
        cluster = Cluster(cpus=1)
    with cluster:
        monitor = _start_monitor(cluster, resources, at_most)
        try:
            yield cluster
        finally:
            monitor.kill()
            monitor.wait()


def complaints(cluster: Cluster) -> str:
    """What the autoscaler has to say to all that are connected to the cluster."""
    log = _logs(cluster) / "monitor.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return "\n".join(line for line in lines if ":event_summary:" in line)


def _logs(cluster: Cluster) -> Path:
    return Path(cluster.temp_dir, "session_latest", "logs")


def _start_monitor(cluster: Cluster, resources: Mapping[str, float], at_most: int) -> subprocess.Popen[bytes]:
    import ray.autoscaler._private.monitor as monitor

    gcs_address = f"127.0.0.1:{cluster.local.gcs_port}"
    path = cluster.state / "autoscaler.json"  # JSON is YAML
    path.write_text(json.dumps(_config(gcs_address, resources, at_most)))
    head = {name: value for name, value in psutil.Process(cluster.head_pid).environ().items()}
    head.pop("RAY_OVERRIDE_NODE_ID_FOR_TESTING")
    return subprocess.Popen(
        [
            sys.executable,
            monitor.__file__,
            f"--logs-dir={_logs(cluster)}",
            f"--gcs-address={gcs_address}",
            f"--autoscaling-config={path}",
        ],
        env={**head, "AUTOSCALER_UPDATE_INTERVAL_S": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _config(gcs_address: str, resources: Mapping[str, float], at_most: int) -> dict[str, Any]:
    provider = {
        "type": "fake_multinode",
        "gcs_address": gcs_address,
        "head_node_id": HEAD_NODE,
        "disable_node_updaters": True,
        "disable_launch_config_check": True,
    }
    return {
        "cluster_name": "fake",
        "max_workers": at_most,
        "upscaling_speed": 1,
        "idle_timeout_minutes": 5,
        "provider": provider,
        "available_node_types": {
            HEAD_TYPE: {"resources": {"CPU": 1}, "node_config": {}, "max_workers": 0},
            "added": {"resources": dict(resources), "node_config": {}, "min_workers": 0, "max_workers": at_most},
        },
        "head_node_type": HEAD_TYPE,
        "auth": {"ssh_user": "nobody"},
        "file_mounts": {},
        "file_mounts_sync_continuously": False,
        **{name: [] for name in EMPTY_LISTS},
    }
