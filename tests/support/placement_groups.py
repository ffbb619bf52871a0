"""What is reserved in a cluster: its placement groups, as its dashboard has them."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from ray_cluster import Cluster


def placement_groups(cluster: Cluster) -> list[dict[str, Any]]:
    """Those that are not removed."""
    token = Path(cluster.token_path).read_text()
    url = f"{cluster.address}/api/v0/placement_groups?limit=10000"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        found = json.load(response)["data"]["result"]["result"]
    return [group for group in found if group["state"] != "REMOVED"]
