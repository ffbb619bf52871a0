"""The slices that Google has: queued resources of Cloud TPU, and the nodes that they hold.

https://cloud.google.com/tpu/docs/queued-resources
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.google import Google, GoogleError

API = "https://tpu.googleapis.com/v2"
LABEL = "marin-cluster"
"""The label of the nodes of a cluster."""
SPENT = ("SUSPENDING", "SUSPENDED")
GONE_NODES = ("PREEMPTED", "TERMINATED", "STOPPED", "STOPPING", "DELETING", "HIDING", "HIDDEN")


class Phase(enum.Enum):
    """The phase of a slice; the text is shown to people."""

    WAITING = "waits for capacity"
    STARTING = "is created"
    UP = "is up"
    SPENT = "is gone"
    FAILED = "has failed"
    DELETING = "is deleted"


@dataclass(frozen=True, kw_only=True)
class Queued:
    """One queued resource."""

    name: str
    phase: Phase
    why: str = ""
    """The reason why it is gone or has failed."""


class Slices:
    """The queued resources of one cluster."""

    def __init__(self, cluster: Cluster, google: Google) -> None:
        self._cluster = cluster
        self._google = google
        self._parent = f"projects/{cluster.project}/locations/{cluster.zone}"

    def all(self) -> list[Queued]:
        """All of the cluster. Raises GoogleError."""
        # The resources first: a node that comes in between belongs to an unknown resource then, and is left alone.
        queued = [resource for resource in self._all("queuedResources") if _label_of(resource) == self._cluster.name]
        nodes = {node["name"]: node for node in self._all("nodes")}
        return [_queued(resource, nodes) for resource in queued]

    def create(self, name: str, body: dict[str, Any], may_send: Callable[[], bool] = lambda: True) -> None:
        """Request a slice, unless one of that name exists. `may_send`: see `Google.call`. Raises GoogleError."""
        url, query = f"{API}/{self._parent}/queuedResources", {"queuedResourceId": name}
        try:
            self._google.call("POST", url, query=query, body=body, may_send=may_send)
        except GoogleError as error:
            if error.status != 409:
                raise

    def delete(self, name: str) -> None:
        """Delete a slice with its node, unless that is done already, or under way. Raises GoogleError."""
        try:
            url = f"{API}/{self._parent}/queuedResources/{name}"
            self._google.call("DELETE", url, query={"force": "true"})
        except GoogleError as error:
            if error.status != 404 and not self._is_being_deleted(name):
                raise

    def nodes_without_request(self) -> list[str]:
        """The nodes of the cluster that belong to no queued resource. Raises GoogleError."""
        nodes = [node for node in self._all("nodes") if node.get("labels", {}).get(LABEL) == self._cluster.name]
        resources = {
            resource["name"] for resource in self._all("queuedResources")
        }  # after the nodes: none of theirs is new
        return [node["name"].rpartition("/")[2] for node in nodes if node.get("queuedResource") not in resources]

    def delete_node(self, name: str) -> None:
        """Delete a node, unless that is done already. Raises GoogleError."""
        try:
            self._google.call("DELETE", f"{API}/{self._parent}/nodes/{name}")
        except GoogleError as error:
            if error.status != 404:
                raise

    def _is_being_deleted(self, name: str) -> bool:
        return not any(slice_.name == name and slice_.phase is not Phase.DELETING for slice_ in self.all())

    def _all(self, key: str) -> Iterator[dict[str, Any]]:
        return self._google.pages(f"{API}/{self._parent}/{key}", key)


def _label_of(queued: dict[str, Any]) -> str | None:
    specs = queued.get("tpu", {}).get("nodeSpec", [])
    return specs[0].get("node", {}).get("labels", {}).get(LABEL) if specs else None


def _queued(resource: dict[str, Any], nodes: dict[str, dict[str, Any]]) -> Queued:
    name = resource["name"].rpartition("/")[2]
    state = resource.get("state", {}).get("state", "STATE_UNSPECIFIED")
    spec = resource["tpu"]["nodeSpec"][0]
    node = nodes.get(f"{spec.get('parent', '')}/nodes/{spec.get('nodeId', '')}")
    if state == "DELETING":
        return Queued(name=name, phase=Phase.DELETING)
    if state == "FAILED":
        error = resource["state"].get("failedData", {}).get("error", {})
        return Queued(name=name, phase=Phase.FAILED, why=error.get("message") or "Google gave no reason")
    if state in SPENT:
        return Queued(name=name, phase=Phase.SPENT, why="preempted, or deleted by hand")
    if node is not None and node.get("state") in GONE_NODES:
        return Queued(name=name, phase=Phase.SPENT, why=f"its node is {node['state']}")
    if state == "ACTIVE":
        return Queued(name=name, phase=Phase.UP)
    waits = state in ("ACCEPTED", "WAITING_FOR_RESOURCES")
    return Queued(name=name, phase=Phase.WAITING if waits else Phase.STARTING)
