"""One resource of Google's that a project shall have: its URL, and the request that creates it. Pure data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COMPUTE = "https://compute.googleapis.com/compute/v1"


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Something that has a URL."""

    kind: str
    """As Google calls it: "firewall"."""
    name: str
    url: str
    """The URL of the resource, once it exists."""
    collection: str
    """The URL that creates it, by POST."""
    body: Mapping[str, Any]
    query: Mapping[str, str] = field(default_factory=dict)
    """The query of the request that creates it."""
    unread: tuple[str, ...] = ()
    """Keys of the body that Google does not answer with."""

    @property
    def label(self) -> str:
        """The text for a person: "subnetwork marin in us-east5"."""
        region = re.search(r"/(?:regions|locations)/([^/]+)/", self.url)
        return f"{self.kind} {self.name}{f' in {region[1]}' if region else ''}"


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A role that a member has on one resource."""

    role: str
    """Google's name: "roles/storage.objectUser"."""
    member: str
    on: str
    """The text for a person: "bucket marin-us-central2"."""
    read: tuple[str, str]
    """Verb and URL that give the policy."""
    write: tuple[str, str]
    """Verb and URL that replace it."""
    wrapped: bool = True
    """Whether the request that replaces it has the policy in a field `policy`."""


def compute(project: str, *parts: str) -> str:
    """A URL of Compute Engine in the project."""
    return "/".join([COMPUTE, "projects", project, *parts])
