"""What is reserved in a cluster: its placement groups and resources, as its dashboard has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from ray_cluster import Cluster
from running import wait_until

from marin_resources.ray_tpu.cluster.local import head as local_head

RELEASE_TIMEOUT_S = 60
CHIPS_IN_USE = """
import logging, sys
import ray

ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
sys.stdout.write(str(ray.cluster_resources().get("TPU", 0.0) - ray.available_resources().get("TPU", 0.0)))
"""


def placement_groups(cluster: Cluster) -> list[dict[str, Any]]:
    """Those that are not removed."""
    found = _ask(cluster, "api/v0/placement_groups?limit=10000")["result"]["result"]
    return [group for group in found if group["state"] != "REMOVED"]


def chips_in_use(cluster: Cluster) -> float:
    """How many chips tasks, actors and placement groups hold, as a driver of the cluster sees it."""
    local = cluster.local
    ended = subprocess.run(
        [sys.executable, "-c", CHIPS_IN_USE, f"127.0.0.1:{local.gcs_port}"],
        env=local_head._environment(local, os.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(ended.stdout)


def await_release(cluster: Cluster) -> None:
    """Wait until no slice is reserved, whole or in part, and no chip is in use."""
    wait_until(lambda: placement_groups(cluster) == [], "all slices to be released", RELEASE_TIMEOUT_S)
    wait_until(lambda: chips_in_use(cluster) == 0, "all chips to be free", RELEASE_TIMEOUT_S)


def _ask(cluster: Cluster, what: str) -> Any:
    token = Path(cluster.token_path).read_text()
    request = urllib.request.Request(f"{cluster.address}/{what}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["data"]
