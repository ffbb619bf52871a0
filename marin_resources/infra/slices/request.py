"""The request for a slice: its type, its identity, and the script by which each of its hosts joins the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marin_resources.clusters.catalogue import templates
from marin_resources.clusters.cluster import Cluster, find_slice_type_or_raise
from marin_resources.infra.google import SCOPE
from marin_resources.infra.slices.desired_state import Slot
from marin_resources.infra.slices.queued_resources import LABEL
from marin_resources.infra.template import fill

SCRIPT = "slice_startup.sh.jinja"
NETWORK_TAG = "marin-ray"


def request_of(cluster: Cluster, slot: Slot, folder: Path | None = None) -> dict[str, Any]:
    """The body of a queued resource of Cloud TPU for the slot's slice. Raises CatalogueError."""
    slice_type = find_slice_type_or_raise(slot.type)
    name = slot.name(cluster)
    node = {
        "acceleratorType": slice_type.kind,
        "runtimeVersion": slice_type.runtime,
        "networkConfig": {
            "network": f"projects/{cluster.project}/global/networks/{cluster.network}",
            "subnetwork": cluster.subnetwork_path,
            "enableExternalIps": False,
        },
        "serviceAccount": {"email": cluster.email(cluster.worker_account), "scope": [SCOPE]},
        "labels": {LABEL: cluster.name, "marin-slot": str(slot.number)},
        "tags": [NETWORK_TAG],
        "metadata": {"startup-script": startup_script(cluster, folder), "enable-oslogin": "TRUE"},
    }
    parent = f"projects/{cluster.project}/locations/{cluster.zone}"
    body: dict[str, Any] = {"tpu": {"nodeSpec": [{"parent": parent, "nodeId": name, "node": node}]}}
    body["spot" if slot.capacity == "spot" else "guaranteed"] = {}
    if slot.capacity == "reserved":
        body["reservationName"] = f"{parent}/reservations/{slot.reservation}"
    return body


def startup_script(cluster: Cluster, folder: Path | None = None) -> str:
    """The script that each host of a slice runs as root whenever it boots. Raises CatalogueError."""
    return fill(folder or templates(), SCRIPT, cluster=cluster)
