"""Compare a project with the resources and rights that it shall have, and create the missing ones.

Nothing that exists is changed or deleted: differences are reported, field by field. So it may be repeated, and a run
that was interrupted continues.
"""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from marin_resources.infra.google import Google, GoogleError
from marin_resources.infra.project.desired_state import WantedProject
from marin_resources.infra.project.resource import Grant, Resource

SERVICES = "https://serviceusage.googleapis.com/v1"
POLL_S = 2.0
TIMEOUT_S = 600.0
TOKEN_BYTES = 32
POLICY_TRIES = 5
"""Number of tries to change a policy, which somebody else may change at the same time."""
OFF = ("has not been used", "is disabled")
"""In Google's sentence about a service that is not enabled."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A resource or right that the project lacks, or that differs from the expected one."""

    label: str
    apply: Callable[[], None] | None
    """Creates it. None if it exists and differs: that is a person's decision."""
    why: str = ""


def changes(project: WantedProject, google: Google, sleep: Callable[[float], None] = time.sleep) -> Iterator[Change]:
    """The changes to apply, in order. Each is read when it is its turn, so apply one before the next is taken.

    Raises GoogleError.
    """
    session = _Session(project.project, google, sleep)
    off = [api for api in project.apis if not session.is_enabled(api)]
    if off:
        yield Change(label=f"services {', '.join(off)}", apply=partial(session.enable, off))
    for resource in project.resources:
        yield from _resource_changes(resource, session)
    for grant in project.grants:
        if not session.has(grant):
            yield Change(label=f"{grant.role} on {grant.on} for {grant.member}", apply=partial(session.give, grant))


def _resource_changes(resource: Resource, session: _Session) -> Iterator[Change]:
    actual = session.read(resource.url)
    expected = {key: value for key, value in resource.body.items() if key not in resource.unread}
    if actual is None:
        yield Change(label=resource.label, apply=partial(session.create, resource))
    elif differing := differences(expected, actual):
        yield Change(label=resource.label, apply=None, why="; ".join(differing))
    if resource.kind == "secret" and not session.has_version(resource):
        yield Change(label=f"a token in {resource.label}", apply=partial(session.add_token, resource))


def differences(expected: Any, actual: Any, field: str = "") -> list[str]:
    """The fields that are not as expected, as phrases. Fields that Google adds do not count."""
    if isinstance(expected, Mapping):
        actual_fields = actual if isinstance(actual, Mapping) else {}
        return [
            phrase
            for key, value in expected.items()
            for phrase in differences(value, actual_fields.get(key), f"{field}.{key}" if field else key)
        ]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(_sorted(expected), _sorted(actual), strict=True))
        return [
            phrase
            for i, (expected_entry, actual_entry) in pairs
            for phrase in differences(expected_entry, actual_entry, f"{field}[{i}]")
        ]
    if not expected and not actual:
        return []  # Google omits empty fields
    return [] if _same(expected, actual) else [f"{field} is {actual!r}, expected {expected!r}"]


class _Session:
    def __init__(self, project: str, google: Google, sleep: Callable[[float], None]) -> None:
        self._project, self._google, self._sleep = project, google, sleep

    def is_enabled(self, api: str) -> bool:
        service = self._google.call("GET", f"{SERVICES}/projects/{self._project}/services/{api}")
        return service.get("state") == "ENABLED"

    def enable(self, apis: list[str]) -> None:
        url = f"{SERVICES}/projects/{self._project}/services:batchEnable"
        self._await(SERVICES, self._google.call("POST", url, body={"serviceIds": apis}))

    def read(self, url: str) -> dict[str, Any] | None:
        """The resource, or None if it does not exist. In a project whose services are off, none exists."""
        return self._call_unless_absent("GET", url)

    def create(self, resource: Resource) -> None:
        try:
            answer = self._google.call("POST", resource.collection, query=resource.query, body=dict(resource.body))
        except GoogleError as error:
            if error.status == 409:  # created since it was read, or the answer to an earlier try was lost
                return
            raise
        self._await("/".join(resource.collection.split("/")[:4]), answer)

    def has_version(self, secret: Resource) -> bool:
        listing = self.read(f"{secret.url}/versions")
        return any(version.get("state") == "ENABLED" for version in (listing or {}).get("versions", []))

    def add_token(self, secret: Resource) -> None:
        """Give the secret a new token, which nobody sees."""
        data = base64.b64encode(secrets.token_hex(TOKEN_BYTES).encode()).decode()
        self._google.call("POST", f"{secret.url}:addVersion", body={"payload": {"data": data}})

    def has(self, grant: Grant) -> bool:
        policy = self._policy(grant)
        return any(_is_bound(grant, binding) for binding in policy.get("bindings", []))

    def give(self, grant: Grant) -> None:
        verb, url = grant.write
        for rest in reversed(range(POLICY_TRIES)):
            policy = self._policy(grant)
            changed = {**policy, "bindings": _with(grant, policy.get("bindings", []))}
            try:
                self._google.call(verb, url, body={"policy": changed} if grant.wrapped else changed)
                return
            except GoogleError as error:
                if error.status not in (409, 412) or not rest:  # else somebody has changed it meanwhile
                    raise
            self._sleep(POLL_S)

    def _policy(self, grant: Grant) -> dict[str, Any]:
        verb, url = grant.read
        return self._call_unless_absent(verb, url) or {}

    def _call_unless_absent(self, verb: str, url: str) -> dict[str, Any] | None:
        try:
            return self._google.call(verb, url, body={} if verb == "POST" else None)
        except GoogleError as error:
            if error.status == 404 or (error.status == 403 and any(text in str(error) for text in OFF)):
                return None
            raise

    def _await(self, root: str, operation: Mapping[str, Any]) -> None:
        """Wait for an operation of Compute Engine, or a long-running one; return at once for another answer."""
        is_compute = operation.get("kind") == "compute#operation"
        if not is_compute and "operations/" not in str(operation.get("name", "")):
            return
        url = str(operation["selfLink"]) if is_compute else f"{root}/{operation['name']}"
        until_s = time.monotonic() + TIMEOUT_S
        while not (operation.get("done") or operation.get("status") == "DONE"):
            if time.monotonic() > until_s:
                raise GoogleError(f"{url} has not ended after {TIMEOUT_S:.0f} s. Look at it, and run this again.")
            self._sleep(POLL_S)
            operation = self._google.call("GET", url)
        errors = operation.get("error") or {}
        if first := next(iter(errors.get("errors") or [errors]), None):
            raise GoogleError(f"{url} has failed: {first.get('message', first)}")


def _with(grant: Grant, bindings: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The bindings with the grant added. A binding with a condition is another binding."""
    extended = [dict(binding) for binding in bindings]
    same = next(
        (binding for binding in extended if binding["role"] == grant.role and not binding.get("condition")), None
    )
    if same is None:
        return [*extended, {"role": grant.role, "members": [grant.member]}]
    same["members"] = sorted({*same.get("members", []), grant.member})
    return extended


def _is_bound(grant: Grant, binding: Mapping[str, Any]) -> bool:
    has_member = grant.member in binding.get("members", [])
    return binding.get("role") == grant.role and has_member and not binding.get("condition")


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values) if all(isinstance(value, str) for value in values) else values


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str) and isinstance(actual, str):  # a name or a path is answered as a whole URL
        return expected == actual or actual.endswith(f"/{expected}")
    return str(expected) == str(actual) if type(expected) is int else bool(expected == actual)
