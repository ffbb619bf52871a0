"""What a deployment says of its Ray cluster: where it is, who may use it, which code and environments run there."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from marin_resources.settings import SettingError

LOCAL = "local"
"""In place of an address: the cluster of `marin cluster local up`."""


class CodeMode(enum.StrEnum):
    """Which code a job runs."""

    SHIP = "ship"
    """The submitter's working directory, packed and shipped as Ray does it."""
    IMAGE = "image"
    """What is on the node."""


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """One Ray cluster, as this deployment uses it."""

    address: str
    """Of the dashboard, for example "http://10.0.0.5:8265"."""
    token_path: str | None = None
    """A file with the token; Ray's own places if None."""
    token_secret: str | None = None
    """The token in Google's Secret Manager: "projects/p/secrets/s" or with "/versions/v"."""
    code: CodeMode = CodeMode.SHIP
    working_dir: str | None = None
    """What is shipped; the project's root if None."""
    image_root: str | None = None
    """Where the image's code lies on a node; None if it is installed there."""
    environments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Path of a Python on the nodes -> the extras that it has. Empty: the `python` of a node has what is needed."""
    start_timeout_s: float = 600.0
    """How long a job may wait for its node, its code and its environment."""
    outage_timeout_s: float = 1800.0
    """How long a dashboard that does not answer is waited for."""

    def __post_init__(self) -> None:
        if not self.address.startswith(("http://", "https://")) or self.address.endswith("/"):
            raise SettingError(
                f"The Ray cluster's address is {self.address!r}, expected {LOCAL!r} or the dashboard's URL, "
                "such as http://10.0.0.5:8265."
            )
        for what in ("start_timeout_s", "outage_timeout_s"):
            if not getattr(self, what) > 0:
                raise SettingError(f"The Ray cluster has {what} {getattr(self, what)!r}, expected seconds above 0.")
