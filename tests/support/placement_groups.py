"""What is reserved in a cluster: its placement groups and resources, as its dashboard has them."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from ray_cluster import Cluster
from running import wait_until

RELEASE_TIMEOUT_S = 60


def placement_groups(cluster: Cluster) -> list[dict[str, Any]]:
    """Those that are not removed."""
    found = _ask(cluster, "api/v0/placement_groups?limit=10000")["result"]["result"]
    return [group for group in found if group["state"] != "REMOVED"]


def resources_in_use(cluster: Cluster) -> dict[str, float] | None:
    """Resource -> how much of it tasks, actors and placement groups hold; None while the cluster does not know.

    The cluster counts every five seconds.
    """
    status = _ask(cluster, "api/cluster_status")["clusterStatus"]
    if status is None:
        return None
    return {name: used for name, (used, _) in status["loadMetricsReport"]["usage"].items() if used}


def await_release(cluster: Cluster) -> None:
    """Wait until no slice is reserved, whole or in part, and no chip is in use."""
    wait_until(lambda: placement_groups(cluster) == [], "all slices to be released", RELEASE_TIMEOUT_S)
    wait_until(lambda: _chips_in_use(cluster) == 0, "all chips to be free", RELEASE_TIMEOUT_S)


def _chips_in_use(cluster: Cluster) -> float | None:
    used = resources_in_use(cluster)
    return None if used is None else sum(amount for name, amount in used.items() if "TPU" in name)


def _ask(cluster: Cluster, what: str) -> Any:
    token = Path(cluster.token_path).read_text()
    request = urllib.request.Request(f"{cluster.address}/{what}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["data"]
