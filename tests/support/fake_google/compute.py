"""Compute Engine: machines of a zone, the project's ssh keys, subnetworks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fake_google.filters import matches
from fake_google.refusals import RefusalError, exists
from fake_google.world import Json, World

NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_KEY, LABEL_VALUE = re.compile(r"[a-z][-_a-z0-9]{0,62}"), re.compile(r"[-_a-z0-9]{0,63}")
PAGE = 500
ROOT = "https://www.googleapis.com/compute/v1"


class Compute:
    def __init__(self, world: World) -> None:
        self.world = world

    def methods(self) -> dict[str, Any]:
        return {
            "compute.instances.insert": self.insert,
            "compute.instances.get": self.get,
            "compute.instances.list": self.list,
            "compute.instances.delete": self.delete,
            "compute.instances.setLabels": self.set_labels,
            "compute.instances.stop": self.stop,
            "compute.instances.start": self.start,
            "compute.zoneOperations.get": self.operation,
            "compute.globalOperations.get": self.operation,
            "compute.projects.get": self.get_project,
            "compute.projects.setCommonInstanceMetadata": self.set_metadata,
            "compute.subnetworks.list": self.list_subnetworks,
        }

    def insert(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        name, zone = body.get("name", ""), at["zone"]
        _check_machine(name, zone, body)
        path = f"projects/{at['project']}/zones/{zone}/instances/{name}"
        if path in self.world.instances:
            raise exists(path)
        self._check_account(body)
        for each in body["networkInterfaces"]:
            self._check_subnetwork(each, zone)
        number = self.world.number()
        interfaces = [
            {"networkIP": f"10.128.{number // 250}.{number % 250 + 2}", **each} for each in body["networkInterfaces"]
        ]
        self.world.instances[path] = instance = {
            **body,
            "id": str(number),
            "selfLink": f"{ROOT}/{path}",
            "zone": f"{ROOT}/projects/{at['project']}/zones/{zone}",
            "status": "PROVISIONING",
            "networkInterfaces": interfaces,
            "labels": body.get("labels", {}),
            "labelFingerprint": f"l{number}",
        }
        self.world.created.append(path)
        return self._do(at, path, "insert", self.world.delays.boot_s, lambda: instance.update(status="RUNNING"))

    def get(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        return self.world.get(self.world.instances, _path(at))

    def list(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        where = f"projects/{at['project']}/zones/{at['zone']}/"
        found = [each for path, each in self.world.instances.items() if path.startswith(where)]
        if text := query.get("filter"):
            found = [each for each in found if matches(each, text)]
        begin, size = int(query.get("pageToken", 0)), int(query.get("maxResults", PAGE))
        page = found[begin : begin + size]
        answer: Json = {"kind": "compute#instanceList", "selfLink": f"{ROOT}/{where}instances"}
        if page:  # an empty list has no field
            answer["items"] = page
        if begin + size < len(found):
            answer["nextPageToken"] = str(begin + size)
        return answer

    def delete(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        path = _path(at)
        self.world.get(self.world.instances, path)["status"] = "STOPPING"
        gone = self.world.delays.deletion_s
        return self._do(at, path, "delete", gone, lambda: self.world.instances.pop(path, None))

    def set_labels(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        instance = self.world.get(self.world.instances, _path(at))
        if body.get("labelFingerprint") != instance["labelFingerprint"]:
            raise RefusalError(412, "Labels fingerprint either invalid or resource labels have changed")
        _check_labels(body.get("labels", {}))
        instance.update(labels=body.get("labels", {}), labelFingerprint=f"l{self.world.number()}")
        return self._do(at, _path(at), "setLabels")

    def stop(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        instance = self.world.get(self.world.instances, _path(at))
        return self._do(at, _path(at), "stop", 0, lambda: instance.update(status="TERMINATED"))

    def start(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        instance = self.world.get(self.world.instances, _path(at))
        return self._do(at, _path(at), "start", 0, lambda: instance.update(status="RUNNING"))

    def operation(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        return self.world.get(self.world.operations, at["operation"])

    def get_project(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        self._check_project(at["project"])
        return {"kind": "compute#project", "name": at["project"], "commonInstanceMetadata": self.world.metadata}

    def set_metadata(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        self._check_project(at["project"])
        if body.get("fingerprint") != self.world.metadata["fingerprint"]:
            raise RefusalError(412, "Supplied fingerprint does not match current metadata fingerprint.")
        self.world.metadata = {"items": body.get("items", []), "fingerprint": f"f{self.world.number()}"}
        return self._do(at, f"projects/{at['project']}", "setMetadata")

    def list_subnetworks(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        where = f"projects/{at['project']}/regions/{at['region']}/"
        found = [
            {"name": path.rpartition("/")[2], "selfLink": f"{ROOT}/{path}", "network": network}
            for path, network in self.world.subnetworks.items()
            if path.startswith(where)
        ]
        return {"kind": "compute#subnetworkList", "items": found}

    def preempt(self, name: str) -> None:
        """Take a spot machine away, as Google does: it is stopped, or deleted if it asks for that."""
        [path] = [path for path in self.world.instances if path.endswith(f"/{name}")]
        scheduling = self.world.instances[path].get("scheduling", {})
        assert scheduling.get("provisioningModel") == "SPOT" or scheduling.get("preemptible"), scheduling
        if scheduling.get("instanceTerminationAction") == "DELETE":
            del self.world.instances[path]
        else:
            self.world.instances[path]["status"] = "TERMINATED"

    def _do(self, at: Mapping[str, str], path: str, kind: str, delay_s: float = 0.0, change: Any = None) -> Json:
        """An operation that is done after a delay, with the change."""
        name = f"operation-{self.world.number()}"
        where = {"zone": at["zone"]} if "zone" in at else {}
        operation = self.world.operation(
            name, kind="compute#operation", operationType=kind, status="RUNNING", targetLink=f"{ROOT}/{path}", **where
        )
        answer = dict(operation)

        def end() -> None:
            if change is not None:
                change()
            operation.update(status="DONE", progress=100)

        self.world.later(delay_s, end)
        return answer

    def _check_project(self, project: str) -> None:
        if project != self.world.project:
            raise RefusalError(404, f"The resource 'projects/{project}' was not found")

    def _check_account(self, body: Json) -> None:
        for each in body.get("serviceAccounts", []):
            if each.get("email") not in ("default", *self.world.accounts):
                raise RefusalError(
                    400, f"The resource 'serviceAccounts/{each.get('email')}' of type 'serviceAccount' was not found."
                )
            if not each.get("scopes"):
                raise RefusalError(400, "At least one scope must be specified for a service account.")

    def _check_subnetwork(self, interface: Json, zone: str) -> None:
        path = interface.get("subnetwork", "").removeprefix(f"{ROOT}/")
        if path and path not in self.world.subnetworks:
            raise RefusalError(404, f"The resource '{path}' was not found")
        if path and f"/regions/{zone.rpartition('-')[0]}/" not in path:
            raise RefusalError(
                400, f"Invalid value for field 'resource.networkInterfaces[0].subnetwork': '{path}'. Another region."
            )


def _path(at: Mapping[str, str]) -> str:
    return f"projects/{at['project']}/zones/{at['zone']}/instances/{at['instance']}"


def _check_machine(name: str, zone: str, body: Json) -> None:
    """Google's rules of a new machine, beyond the types of its fields."""
    if not NAME.fullmatch(name):
        raise RefusalError(
            400, f"Invalid value for field 'resource.name': '{name}'. Must be a match of regex '{NAME.pattern}'"
        )
    if not re.fullmatch(rf"(.*/)?zones/{zone}/machineTypes/[a-z0-9-]+", body.get("machineType", "")):
        raise RefusalError(400, f"Invalid value for field 'resource.machineType': '{body.get('machineType')}'.")
    if not body.get("networkInterfaces"):
        raise RefusalError(
            400, "Invalid value for field 'resource.networkInterfaces': ''. At least one network interface is required."
        )
    boot = [disk for disk in body.get("disks", []) if disk.get("boot")]
    if len(boot) != 1:
        raise RefusalError(400, "Invalid value for field 'resource.disks': Boot disk must be the first disk attached.")
    kind = boot[0].get("initializeParams", {}).get("diskType", "")
    if kind and f"zones/{zone}/" not in kind:
        raise RefusalError(400, f"Invalid value for field 'resource.disks[0].initializeParams.diskType': '{kind}'.")
    scheduling = body.get("scheduling", {})
    spot = scheduling.get("provisioningModel") == "SPOT" or scheduling.get("preemptible")
    if spot and (scheduling.get("automaticRestart") or scheduling.get("onHostMaintenance") == "MIGRATE"):
        raise RefusalError(
            400, "Scheduling must have preemptible be false when automaticRestart is true or MIGRATE is set."
        )
    if not spot and scheduling.get("instanceTerminationAction"):
        raise RefusalError(400, "instanceTerminationAction is for Spot VMs alone.")
    _check_labels(body.get("labels", {}))


def _check_labels(labels: Mapping[str, str]) -> None:
    for key, value in labels.items():
        if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
            raise RefusalError(
                400, f"Invalid value for field 'labels': '{key}={value}'. Only small letters, digits, _ and -."
            )
    if len(labels) > 64:
        raise RefusalError(400, "A resource has at most 64 labels.")
