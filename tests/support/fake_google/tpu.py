"""Cloud TPU: slices ("nodes") and queued resources of a zone.

A slice is CREATING, then READY. A spot slice that is taken away is PREEMPTED, and stays in the list until somebody
deletes it. A queued resource goes from ACCEPTED over WAITING_FOR_RESOURCES, as long as there is no capacity,
PROVISIONING and CREATING to ACTIVE; it is SUSPENDED, and its slice gone, when that was preempted or deleted. Its name
is free again when it is deleted, which without `force` only one that holds nothing can be.
https://cloud.google.com/tpu/docs/queued-resources
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from fake_google.compute import ROOT
from fake_google.refusals import RefusalError, exists, not_in_this_state
from fake_google.world import Json, World
from marin_resources.hardware.catalogue import SliceType, find_slice_type

NODE_ID = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
HOLDS_NOTHING = ("ACCEPTED", "WAITING_FOR_RESOURCES", "FAILED", "SUSPENDED")
PAGE = 1000
TYPE_PREFIX = "type.googleapis.com/google.cloud.tpu.v2"
STATE_DATA = {"FAILED": "failedData", "ACTIVE": "activeData", "SUSPENDED": "suspendedData", "CREATING": "creatingData"}


class Tpu:
    def __init__(self, world: World) -> None:
        self.world = world
        self._unlisted: set[str] = set()

    def methods(self) -> dict[str, Any]:
        where = "tpu.projects.locations"
        return {
            f"{where}.nodes.create": self.create_node,
            f"{where}.nodes.get": self.get_node,
            f"{where}.nodes.list": self.list_nodes,
            f"{where}.nodes.delete": self.delete_node,
            f"{where}.nodes.patch": self.patch_node,
            f"{where}.nodes.stop": self.stop_node,
            f"{where}.operations.get": self.operation,
            f"{where}.queuedResources.create": self.create_queued,
            f"{where}.queuedResources.get": self.get_queued,
            f"{where}.queuedResources.list": self.list_queued,
            f"{where}.queuedResources.delete": self.delete_queued,
        }

    # slices

    def create_node(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        node_id = query.get("nodeId", "")
        path = f"{_parent(at)}/nodes/{node_id}"
        kind = self._check_node(at, node_id, body)
        if path in self.world.nodes:
            raise exists(path)
        if self.world.free(at["locationsId"], kind.kind) == 0:
            error = {"code": 8, "message": "There is no more capacity in the zone"}
            return self._operation(at, path, done=True, error=error)
        return self._boot(at, path, body, kind)

    def get_node(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        return self.world.get(self.world.nodes, f"{_parent(at)}/nodes/{at['nodesId']}")

    def list_nodes(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        return _page(self.world.nodes, f"{_parent(at)}/nodes/", query, "nodes")

    def delete_node(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        path = f"{_parent(at)}/nodes/{at['nodesId']}"
        node = self.world.get(self.world.nodes, path)
        if node["state"] == "DELETING":
            raise not_in_this_state(path, "DELETING", "deleted")
        node["state"] = "DELETING"
        operation = self._operation(at, path)

        def end() -> None:
            self._remove(path)
            _end(operation, {"@type": "type.googleapis.com/google.protobuf.Empty"})

        self.world.later(self.world.delays.deletion_s, end)
        return operation

    def patch_node(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        path = f"{_parent(at)}/nodes/{at['nodesId']}"
        node = self.world.get(self.world.nodes, path)
        for name in query.get("updateMask", "").split(","):
            if name not in ("labels", "description", "tags", "metadata"):
                raise RefusalError(400, f"Field {name!r} of update_mask cannot be changed")
            node[name] = body.get(name)
        return self._operation(at, path, done=True, response={"@type": f"{TYPE_PREFIX}.Node", **node})

    def stop_node(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        path = f"{_parent(at)}/nodes/{at['nodesId']}"
        node = self.world.get(self.world.nodes, path)
        if len(node["networkEndpoints"]) > 1:
            raise not_in_this_state(path, f"{node['state']} with several hosts", "stopped")
        node["state"] = "STOPPED"
        return self._operation(at, path, done=True, response={"@type": f"{TYPE_PREFIX}.Node", **node})

    def operation(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        return self.world.get(self.world.operations, f"{_parent(at)}/operations/{at['operationsId']}")

    # queued resources

    def create_queued(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        name = query.get("queuedResourceId", "")
        path = f"{_parent(at)}/queuedResources/{name}"
        if not NODE_ID.fullmatch(name):
            raise RefusalError(400, f"Invalid queued_resource_id {name!r}")
        specs = body.get("tpu", {}).get("nodeSpec", [])
        if len(specs) != 1 or "multiNodeParams" in specs[0]:
            raise RefusalError(400, "This Google takes one node_spec with one node_id")
        if sum(tier in body for tier in ("spot", "guaranteed", "bestEffort")) > 1:
            raise RefusalError(400, "At most one tier can be set")
        if specs[0].get("parent") != _parent(at):
            raise RefusalError(400, f"Invalid parent {specs[0].get('parent')!r}")
        self._check_node(at, specs[0].get("nodeId", ""), specs[0].get("node", {}))
        reserved = body.get("guaranteed", {}).get("reserved")
        if reserved and not body.get("reservationName"):
            raise RefusalError(400, "reservation_name is required of reserved capacity")
        if path in self.world.queued:
            raise exists(path)
        self.world.queued[path] = {**body, "name": path, "state": {"state": "ACCEPTED"}}
        self.world.created.append(path)
        operation = self._operation(
            at, path, done=True, response={"@type": f"{TYPE_PREFIX}.QueuedResource", "name": path}
        )
        self._unlisted.add(path)
        self.world.later(self.world.delays.listing_s, lambda: self._unlisted.discard(path))
        self.world.later(self.world.delays.provisioning_s, lambda: self._provision(at, path))
        return operation

    def get_queued(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        return self.world.get(self.world.queued, f"{_parent(at)}/queuedResources/{at['queuedResourcesId']}")

    def list_queued(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        self._provision_waiting()
        listed = {path: each for path, each in self.world.queued.items() if path not in self._unlisted}
        return _page(listed, f"{_parent(at)}/queuedResources/", query, "queuedResources")

    def delete_queued(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        path = f"{_parent(at)}/queuedResources/{at['queuedResourcesId']}"
        queued = self.world.get(self.world.queued, path)
        state = queued["state"]["state"]
        if state == "DELETING" or (state not in HOLDS_NOTHING and query.get("force", "").lower() != "true"):
            raise not_in_this_state(path, state, "deleted without force")
        _set_state(queued, "DELETING")
        operation = self._operation(at, path)

        def end() -> None:
            self.world.queued.pop(path, None)
            for node_path in [each for each, node in self.world.nodes.items() if node.get("queuedResource") == path]:
                del self.world.nodes[node_path]
            _end(operation, {"@type": "type.googleapis.com/google.protobuf.Empty"})

        self.world.later(self.world.delays.deletion_s, end)
        return operation

    # what Google does by itself

    def preempt(self, name: str) -> None:
        """Take a spot slice away, of a queued resource or not."""
        [path] = [path for path in self.world.nodes if path.endswith(f"/nodes/{name}")]
        node = self.world.nodes[path]
        scheduling = node.get("schedulingConfig", {})
        assert scheduling.get("spot") or scheduling.get("preemptible"), scheduling
        if "queuedResource" in node:
            self._remove(path)
        else:
            node["state"] = "PREEMPTED"

    def fail(self, name: str, why: str) -> None:
        """Let a queued resource fail, as one that is over the quota."""
        [path] = [path for path in self.world.queued if path.endswith(f"/{name}")]
        _set_state(self.world.queued[path], "FAILED", failedData={"error": {"code": 8, "message": why}})

    def _provision_waiting(self) -> None:
        for path, queued in list(self.world.queued.items()):
            if queued["state"]["state"] == "WAITING_FOR_RESOURCES":
                _, project, _, zone, *_ = path.split("/")
                self._provision({"projectsId": project, "locationsId": zone}, path)

    def _provision(self, at: Mapping[str, str], path: str) -> None:
        queued = self.world.queued.get(path)
        if queued is None or queued["state"]["state"] not in ("ACCEPTED", "WAITING_FOR_RESOURCES"):
            return
        [spec] = queued["tpu"]["nodeSpec"]
        kind = _type_of(spec["node"])
        if self.world.free(at["locationsId"], kind.kind) == 0:
            _set_state(queued, "WAITING_FOR_RESOURCES")
            return
        scheduling = {"spot": True} if "spot" in queued else {}
        if "reservationName" in queued:
            scheduling = {"reserved": True}
        node = {**spec["node"], "queuedResource": path, "schedulingConfig": scheduling}
        _set_state(queued, "PROVISIONING")
        self._boot(at, f"{spec['parent']}/nodes/{spec['nodeId']}", node, kind)

    def _boot(self, at: Mapping[str, str], path: str, body: Json, kind: SliceType) -> Json:
        number = self.world.number()
        endpoints = [
            {"ipAddress": f"10.{number % 200 + 1}.{host // 250}.{host % 250 + 2}", "port": 8470}
            for host in range(kind.hosts)
        ]
        if body.get("networkConfig", {}).get("enableExternalIps"):
            endpoints = [{**each, "accessConfig": {"externalIp": f"203.0.113.{number % 250}"}} for each in endpoints]
        self.world.nodes[path] = node = {
            **body,
            "name": path,
            "acceleratorType": kind.kind,
            "state": "CREATING",
            "createTime": _time(self.world.now()),
            "labels": body.get("labels", {}),
            "networkEndpoints": endpoints,
        }
        self.world.created.append(path)
        operation = self._operation(at, path)
        self._mark(node, "CREATING")

        def end() -> None:
            if self.world.nodes.get(path) is node and node["state"] == "CREATING":
                node.update(state="READY", health="HEALTHY")
                self._mark(node, "ACTIVE")
                _end(operation, {"@type": f"{TYPE_PREFIX}.Node", **node})
            elif "done" not in operation:
                operation.update(done=True, error={"code": 1, "message": "The node was deleted meanwhile"})

        self.world.later(self.world.delays.boot_s, end)
        return operation

    def _mark(self, node: Json, state: str) -> None:
        queued = self.world.queued.get(node.get("queuedResource", ""))
        if queued is not None and queued["state"]["state"] != "DELETING":
            _set_state(queued, state)

    def _remove(self, path: str) -> None:
        node = self.world.nodes.pop(path, None)
        if node is not None:
            self._mark(node, "SUSPENDED")

    def _check_node(self, at: Mapping[str, str], node_id: str, body: Json) -> SliceType:
        if not NODE_ID.fullmatch(node_id):
            raise RefusalError(400, f"Invalid node_id {node_id!r}")
        kind = _type_of(body)
        if at["locationsId"] not in kind.zones:
            raise RefusalError(404, f"Accelerator type {kind.kind!r} is not in zone {at['locationsId']!r}")
        if not body.get("runtimeVersion"):
            raise RefusalError(400, "runtime_version is required")
        subnetwork = body.get("networkConfig", {}).get("subnetwork", "").removeprefix(f"{ROOT}/")
        if subnetwork and subnetwork not in self.world.subnetworks:
            raise RefusalError(400, f"Subnetwork {subnetwork!r} does not exist")
        account = body.get("serviceAccount", {}).get("email")
        if account and account not in self.world.accounts:
            raise RefusalError(400, f"Service account {account!r} does not exist")
        return kind

    def _operation(self, at: Mapping[str, str], target: str, *, done: bool = False, **fields: Any) -> Json:
        name = f"{_parent(at)}/operations/operation-{self.world.number()}"
        ended = {"done": True} if done else {}
        return self.world.operation(name, metadata={"target": target}, **ended, **fields)


def _parent(at: Mapping[str, str]) -> str:
    return f"projects/{at['projectsId']}/locations/{at['locationsId']}"


def _page(things: Mapping[str, Json], where: str, query: Mapping[str, str], key: str) -> Json:
    found = [thing for path, thing in things.items() if path.startswith(where)]
    begin, size = int(query.get("pageToken") or 0), int(query.get("pageSize") or PAGE)
    answer: Json = {key: found[begin : begin + size]} if found[begin : begin + size] else {}
    return answer | ({"nextPageToken": str(begin + size)} if begin + size < len(found) else {})


def _set_state(queued: Json, state: str, **data: Any) -> None:
    filled = {STATE_DATA[state]: {}} if state in STATE_DATA else {}
    queued["state"] = {"state": state, **filled, **data}


def _end(operation: Json, response: Json) -> None:
    operation.update(done=True, response=response)


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _type_of(body: Json) -> SliceType:
    if ("acceleratorType" in body) == ("acceleratorConfig" in body):
        raise RefusalError(400, "Exactly one of accelerator_type and accelerator_config must be set")
    name = body.get("acceleratorType", "")
    if "acceleratorConfig" in body:
        from ray.autoscaler._private.gcp.config import tpu_accelerator_config_to_type

        name = tpu_accelerator_config_to_type(body["acceleratorConfig"])
    found = find_slice_type(name)
    if found is None or found.kind != name:
        raise RefusalError(404, f"Accelerator type {name!r} was not found")
    return found
