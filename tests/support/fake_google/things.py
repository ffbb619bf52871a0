"""What a project has beside machines and slices: its network, buckets, registries of images, secrets, and services.

A thing is made, read and never changed, except for the policy of who may what on it. Google's rules of each kind are
kept as far as a wrong request would be noticed by them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any

from fake_google.refusals import RefusalError, exists
from fake_google.world import Json, World

COMPUTE = "https://www.googleapis.com/compute/v1"
NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
BUCKET = re.compile(r"[a-z0-9][-_.a-z0-9]{1,61}[a-z0-9]")
SECRET = re.compile(r"[A-Za-z0-9_-]{1,255}")
ROLES = {
    "b": ("storage.objectUser", "storage.legacyBucketReader", "storage.objectViewer"),
    "secrets": ("secretmanager.secretAccessor",),
    "repositories": ("artifactregistry.reader", "artifactregistry.writer"),
    "serviceAccounts": ("iam.serviceAccountUser",),
    "projects": ("compute.instanceAdmin.v1", "tpu.admin", "iap.tunnelResourceAccessor", "storage.objectUser", "owner"),
}
"""Kind of thing -> roles that Google grants on it, of those that are known here."""
MEMBER = re.compile(r"(user|group|serviceAccount|domain):[^@\s]+@?[^@\s]+")


class Things:
    def __init__(self, world: World) -> None:
        self.world = world

    def methods(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for kind, check in {
            "networks": self._check_network,
            "subnetworks": self._check_subnetwork,
            "firewalls": self._check_firewall,
            "routers": self._check_router,
            "addresses": self._check_address,
        }.items():
            found[f"compute.{kind}.insert"] = self._insert(kind, check)
            found[f"compute.{kind}.get"] = self._get(kind)
        found["compute.regionOperations.get"] = lambda at, query, body: self.world.get(
            self.world.operations, at["operation"]
        )
        for kind, where in {
            "secretmanager.projects.secrets": "secrets",
            "artifactregistry.projects.locations.repositories": "repositories",
            "iam.projects.serviceAccounts": "serviceAccounts",
            "cloudresourcemanager.projects": "projects",
            "storage.buckets": "b",
        }.items():
            found[f"{kind}.getIamPolicy"] = self._get_policy(where)
            found[f"{kind}.setIamPolicy"] = self._set_policy(where)
        return found | {
            "storage.buckets.insert": self.insert_bucket,
            "storage.buckets.get": lambda at, query, body: self.world.get(self.world.things, f"b/{at['bucket']}"),
            "secretmanager.projects.secrets.create": self.create_secret,
            "secretmanager.projects.secrets.get": lambda at, query, body: self.world.get(self.world.things, _path(at)),
            "secretmanager.projects.secrets.addVersion": self.add_version,
            "secretmanager.projects.secrets.versions.list": self.list_versions,
            "artifactregistry.projects.locations.repositories.create": self.create_repository,
            "artifactregistry.projects.locations.repositories.get": lambda at, query, body: self.world.get(
                self.world.things, _path(at)
            ),
            "artifactregistry.projects.locations.operations.get": self.long_operation,
            "serviceusage.services.get": self.get_service,
            "serviceusage.services.batchEnable": self.enable_services,
            "serviceusage.operations.get": self.long_operation,
        }

    # Services

    def get_service(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        name = at["servicesId"]
        state = "ENABLED" if self.world.is_enabled(name) else "DISABLED"
        return {"name": f"projects/1/services/{name}", "state": state}

    def enable_services(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        names = body.get("serviceIds", [])
        if not 0 < len(names) <= 20:
            raise RefusalError(400, "A request enables 1 to 20 services.")

        def enable() -> None:
            if self.world.enabled is not None:
                self.world.enabled |= set(names)

        return self._long("operations", enable)

    def long_operation(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        return self.world.get(self.world.operations, at["operationsId"])

    def _long(self, where: str, change: Callable[[], None]) -> Json:
        number = f"op.{self.world.number()}"
        operation = self.world.operations[number] = {"name": f"{where}/{number}"}

        def end() -> None:
            change()
            operation["done"] = True  # type: ignore[assignment]

        answer = dict(operation)
        self.world.later(self.world.delays.boot_s, end)
        return answer

    # The network

    def _insert(self, kind: str, check: Callable[[Mapping[str, str], Json], None]) -> Any:
        def insert(at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
            name = body.get("name", "")
            if not NAME.fullmatch(name):
                raise RefusalError(400, f"Invalid value for field 'resource.name': '{name}'.")
            where = f"regions/{at['region']}" if "region" in at else "global"
            path = f"projects/{at['project']}/{where}/{kind}/{name}"
            if path in self.world.things or (kind == "subnetworks" and path in self.world.subnetworks):
                raise exists(path)
            check(at, body)
            operation = f"operation-{self.world.number()}"
            link = f"{COMPUTE}/projects/{at['project']}/{where}/operations/{operation}"
            answer = self.world.operation(
                operation, kind="compute#operation", operationType="insert", status="RUNNING", selfLink=link
            )
            shown = dict(answer)

            def end() -> None:
                whole = {key: self._whole(key, value) for key, value in body.items()}
                self.world.things[path] = {**whole, "id": str(self.world.number()), "selfLink": f"{COMPUTE}/{path}"}
                if kind == "subnetworks":
                    self.world.subnetworks[path] = body["network"].rpartition("/")[2]
                answer.update(status="DONE", progress=100)

            self.world.later(self.world.delays.boot_s, end)
            return shown

        return insert

    def _get(self, kind: str) -> Any:
        def get(at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
            where = f"regions/{at['region']}" if "region" in at else "global"
            [name] = [value for key, value in at.items() if key not in ("project", "region")]
            return self.world.get(self.world.things, f"projects/{at['project']}/{where}/{kind}/{name}")

        return get

    def _whole(self, key: str, value: Any) -> Any:
        """A path is answered as a URL."""
        is_path = isinstance(value, str) and value.startswith("projects/")
        return f"{COMPUTE}/{value}" if is_path else f"{COMPUTE}/regions/{value}" if key == "region" else value

    def _require(self, body: Json, field: str, path: str) -> None:
        path = path.removeprefix(f"{COMPUTE}/")
        if path not in self.world.things:
            raise RefusalError(404, f"Invalid value for field 'resource.{field}': '{path}'. It was not found.")

    def _check_network(self, at: Mapping[str, str], body: Json) -> None:
        if "autoCreateSubnetworks" not in body:
            raise RefusalError(400, "Required field 'resource.autoCreateSubnetworks' not specified.")
        if not 1300 <= int(body.get("mtu", 1460)) <= 8896:
            raise RefusalError(400, f"Invalid value for field 'resource.mtu': '{body['mtu']}'.")

    def _check_subnetwork(self, at: Mapping[str, str], body: Json) -> None:
        self._require(body, "network", body.get("network", ""))
        try:
            own = ipaddress.IPv4Network(body.get("ipCidrRange", ""))
        except ValueError as error:
            raise RefusalError(400, f"Invalid value for field 'resource.ipCidrRange': {error}") from None
        for path, other in self.world.things.items():
            if "/subnetworks/" in path and own.overlaps(ipaddress.IPv4Network(other["ipCidrRange"])):
                raise RefusalError(400, f"Invalid IPCidrRange: {own} conflicts with existing subnetwork '{path}'.")

    def _check_firewall(self, at: Mapping[str, str], body: Json) -> None:
        self._require(body, "network", body.get("network", ""))
        if ("allowed" in body) == ("denied" in body):
            raise RefusalError(400, "A firewall rule has either 'allowed' or 'denied'.")
        for each in body.get("sourceRanges", []):
            ipaddress.IPv4Network(each)
        for rule in body.get("allowed", []):
            if rule.get("IPProtocol") not in ("tcp", "udp", "icmp", "esp", "ah", "sctp", "ipip", "all"):
                raise RefusalError(400, f"Invalid value for field 'resource.allowed[0].IPProtocol': {rule}.")
            if rule.get("ports") and rule["IPProtocol"] not in ("tcp", "udp", "sctp"):
                raise RefusalError(400, "Ports may be specified for tcp, udp and sctp alone.")
        if body.get("direction", "INGRESS") == "INGRESS" and not (body.get("sourceRanges") or body.get("sourceTags")):
            raise RefusalError(400, "An ingress rule has source ranges, source tags or source service accounts.")

    def _check_router(self, at: Mapping[str, str], body: Json) -> None:
        self._require(body, "network", body.get("network", ""))
        for nat in body.get("nats", []):
            for each in nat.get("subnetworks", []):
                self._require(body, "nats[0].subnetworks", each["name"])
                if f"/regions/{at['region']}/" not in each["name"]:
                    raise RefusalError(400, f"The subnetwork '{each['name']}' is in another region.")

    def _check_address(self, at: Mapping[str, str], body: Json) -> None:
        self._require(body, "subnetwork", body.get("subnetwork", ""))
        if body.get("addressType") != "INTERNAL":
            raise RefusalError(400, "Only an internal address has a subnetwork.")
        path = body["subnetwork"].removeprefix(f"{COMPUTE}/")
        if f"/regions/{at['region']}/" not in path:
            raise RefusalError(400, f"The subnetwork '{path}' is in another region.")
        inside = ipaddress.IPv4Network(self.world.things[path]["ipCidrRange"])
        address = ipaddress.IPv4Address(body["address"])
        if address not in inside or address in (inside.network_address, inside.network_address + 1):
            raise RefusalError(400, f"Requested internal IP address {address} is not in the subnetwork's range.")
        if any(other.get("address") == str(address) for other in self.world.things.values()):
            raise RefusalError(409, f"The IP address {address} is already in use.")

    # Stores

    def insert_bucket(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        name = body.get("name", "")
        if not BUCKET.fullmatch(name):
            raise RefusalError(400, f"Invalid bucket name: '{name}'")
        if f"b/{name}" in self.world.things:
            raise exists(name)
        for rule in body.get("lifecycle", {}).get("rule", []):
            if rule["action"]["type"] == "AbortIncompleteMultipartUpload" and set(rule["condition"]) - {
                "age",
                "matchesPrefix",
                "matchesSuffix",
            }:
                raise RefusalError(400, "AbortIncompleteMultipartUpload takes age and prefixes alone.")
        self.world.things[f"b/{name}"] = {"kind": "storage#bucket", "id": name, "projectNumber": "1", **body}
        return self.world.things[f"b/{name}"]

    def create_secret(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        name = query["secretId"]
        path = f"projects/{at['projectsId']}/secrets/{name}"
        if not SECRET.fullmatch(name) or not body.get("replication"):
            raise RefusalError(400, "The secret has no valid name, or no replication.")
        if path in self.world.things:
            raise exists(path)
        self.world.things[path] = {**body, "name": f"projects/1/secrets/{name}"}
        return self.world.things[path]

    def add_version(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        import base64

        self.world.get(self.world.things, _path(at))
        name = at["secretsId"]
        self.world.secrets[name] = base64.b64decode(body["payload"]["data"]).decode()
        return {"name": f"projects/1/secrets/{name}/versions/1", "state": "ENABLED"}

    def list_versions(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        self.world.get(self.world.things, _path(at))
        name = at["secretsId"]
        there = [{"name": f"projects/1/secrets/{name}/versions/1", "state": "ENABLED"}]
        return {"versions": there} if name in self.world.secrets else {}

    def create_repository(self, at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
        path = f"projects/{at['projectsId']}/locations/{at['locationsId']}/repositories/{query['repositoryId']}"
        if path in self.world.things:
            raise exists(path)
        if not body.get("format"):
            raise RefusalError(400, "The repository has no format.")
        for name, policy in body.get("cleanupPolicies", {}).items():
            if policy.get("id") != name or ("condition" in policy) == ("mostRecentVersions" in policy):
                raise RefusalError(400, f"The clean-up policy {name!r} is invalid.")
        where = f"projects/{at['projectsId']}/locations/{at['locationsId']}/operations"
        return self._long(where, lambda: self.world.things.update({path: {**body, "name": path}}))

    # Who may what

    def _get_policy(self, kind: str) -> Any:
        def get(at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
            return self._policy(kind, at)

        return get

    def _set_policy(self, kind: str) -> Any:
        def change(at: Mapping[str, str], query: Mapping[str, str], body: Json) -> Json:
            now, policy = self._policy(kind, at), body if kind == "b" else body.get("policy", {})
            if policy.get("etag") != now["etag"]:
                raise RefusalError(
                    412 if kind == "b" else 409, "There were concurrent policy changes. Please retry.", code="ABORTED"
                )
            for binding in policy.get("bindings", []):
                self._check_binding(kind, binding)
            changed = {**policy, "etag": f"e{self.world.number()}"}
            if kind == "projects":
                self.world.policy = changed
            else:
                self.world.policies[_thing(kind, at)] = changed
            return changed

        return change

    def _policy(self, kind: str, at: Mapping[str, str]) -> Json:
        if kind == "projects":
            return self.world.policy
        path = _thing(kind, at)
        if kind == "serviceAccounts":
            self.world.get(self.world.accounts, at["serviceAccountsId"])
        else:
            self.world.get(self.world.things, path)
        return self.world.policies.setdefault(path, {"etag": "e0"})

    def _check_binding(self, kind: str, binding: Json) -> None:
        role = binding.get("role", "").removeprefix("roles/")
        known = (*ROLES[kind], "editor", "viewer") if kind == "projects" else ROLES[kind]
        if role not in known and not (kind == "projects" and role.count(".") == 1):
            raise RefusalError(400, f"Role roles/{role} is not supported for this resource.")
        for member in binding.get("members", []):
            if not MEMBER.fullmatch(member):
                raise RefusalError(400, f"Invalid member: {member!r}")
            email = member.removeprefix("serviceAccount:")
            own = email.endswith(f"@{self.world.project}.iam.gserviceaccount.com")
            if member.startswith("serviceAccount:") and own and email not in self.world.accounts:
                raise RefusalError(400, f"Service account {email} does not exist.")


def _path(at: Mapping[str, str]) -> str:
    names = {
        "projectsId": "projects",
        "locationsId": "locations",
        "secretsId": "secrets",
        "repositoriesId": "repositories",
    }
    return "/".join(f"{names[key]}/{value}" for key, value in at.items() if key in names)


def _thing(kind: str, at: Mapping[str, str]) -> str:
    if kind == "b":
        return f"b/{at['bucket']}"
    if kind == "serviceAccounts":
        return f"serviceAccounts/{at['serviceAccountsId']}"
    return _path(at)
