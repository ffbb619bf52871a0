"""Look at what a project has of what it shall have, and create what it has not.

Nothing that is there is changed or deleted: what differs is reported, field by field. So it may be repeated, and a run
that was interrupted goes on.
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
from marin_resources.infra.project.resource import Grant, Resource
from marin_resources.infra.project.wanted import WantedProject

SERVICES = "https://serviceusage.googleapis.com/v1"
POLL_S = 2.0
TIMEOUT_S = 600.0
TOKEN_BYTES = 32
POLICY_TRIES = 5
"""Of a change of a policy, which somebody else may change at the same time."""
OFF = ("has not been used", "is disabled")
"""In Google's sentence about a service that is not enabled."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that the project lacks, or that is otherwise than it shall be."""

    label: str
    apply: Callable[[], None] | None
    """Creates it. None for what is there and differs: that is a person's decision."""
    why: str = ""


def changes(project: WantedProject, google: Google, sleep: Callable[[float], None] = time.sleep) -> Iterator[Change]:
    """What is to be done, in order. Each is looked at when it is its turn, so apply one before the next is taken.

    Raises GoogleError.
    """
    hand = _Hand(project.project, google, sleep)
    off = [api for api in project.apis if not hand.is_enabled(api)]
    if off:
        yield Change(label=f"services {', '.join(off)}", apply=partial(hand.enable, off))
    for resource in project.resources:
        yield from _of_resource(resource, hand)
    for grant in project.grants:
        if not hand.has(grant):
            yield Change(label=f"{grant.role} on {grant.on} for {grant.member}", apply=partial(hand.give, grant))


def _of_resource(resource: Resource, hand: _Hand) -> Iterator[Change]:
    found = hand.read(resource.url)
    wanted = {key: value for key, value in resource.body.items() if key not in resource.unread}
    if found is None:
        yield Change(label=resource.label, apply=partial(hand.create, resource))
    elif differing := differences(wanted, found):
        yield Change(label=resource.label, apply=None, why="; ".join(differing))
    if resource.kind == "secret" and not hand.has_version(resource):
        yield Change(label=f"a token in {resource.label}", apply=partial(hand.add_token, resource))


def differences(wanted: Any, found: Any, field: str = "") -> list[str]:
    """The fields that are not as wanted, as phrases. What Google adds does not count."""
    if isinstance(wanted, Mapping):
        there = found if isinstance(found, Mapping) else {}
        return [
            phrase
            for key, value in wanted.items()
            for phrase in differences(value, there.get(key), f"{field}.{key}" if field else key)
        ]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(_sorted(wanted), _sorted(found), strict=True))
        return [phrase for i, (one, other) in pairs for phrase in differences(one, other, f"{field}[{i}]")]
    if not wanted and not found:
        return []  # Google leaves out what is empty
    return [] if _same(wanted, found) else [f"{field} is {found!r}, expected {wanted!r}"]


class _Hand:
    def __init__(self, project: str, google: Google, sleep: Callable[[float], None]) -> None:
        self._project, self._google, self._sleep = project, google, sleep

    def is_enabled(self, api: str) -> bool:
        found = self._google.call("GET", f"{SERVICES}/projects/{self._project}/services/{api}")
        return found.get("state") == "ENABLED"

    def enable(self, apis: list[str]) -> None:
        url = f"{SERVICES}/projects/{self._project}/services:batchEnable"
        self._await(SERVICES, self._google.call("POST", url, body={"serviceIds": apis}))

    def read(self, url: str) -> dict[str, Any] | None:
        """What is there, or None. In a project whose services are off, nothing is."""
        return self._call_unless_absent("GET", url)

    def create(self, resource: Resource) -> None:
        try:
            answer = self._google.call("POST", resource.collection, query=resource.query, body=dict(resource.body))
        except GoogleError as error:
            if error.status == 409:  # made since it was looked for, or the answer to an earlier try was lost
                return
            raise
        self._await("/".join(resource.collection.split("/")[:4]), answer)

    def has_version(self, secret: Resource) -> bool:
        found = self.read(f"{secret.url}/versions")
        return any(each.get("state") == "ENABLED" for each in (found or {}).get("versions", []))

    def add_token(self, secret: Resource) -> None:
        """Give the secret a new token, which nobody sees."""
        data = base64.b64encode(secrets.token_hex(TOKEN_BYTES).encode()).decode()
        self._google.call("POST", f"{secret.url}:addVersion", body={"payload": {"data": data}})

    def has(self, grant: Grant) -> bool:
        policy = self._policy(grant)
        return any(_is_bound(grant, each) for each in policy.get("bindings", []))

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
    """The bindings and this one. One with a condition is another."""
    found = [dict(each) for each in bindings]
    same = next((each for each in found if each["role"] == grant.role and not each.get("condition")), None)
    if same is None:
        return [*found, {"role": grant.role, "members": [grant.member]}]
    same["members"] = sorted({*same.get("members", []), grant.member})
    return found


def _is_bound(grant: Grant, binding: Mapping[str, Any]) -> bool:
    has_member = grant.member in binding.get("members", [])
    return binding.get("role") == grant.role and has_member and not binding.get("condition")


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values) if all(isinstance(value, str) for value in values) else values


def _same(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, str) and isinstance(found, str):  # a name or a path is answered as a whole URL
        return wanted == found or found.endswith(f"/{wanted}")
    return str(wanted) == str(found) if type(wanted) is int else bool(wanted == found)
