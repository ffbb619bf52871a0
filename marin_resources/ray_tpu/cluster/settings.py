"""The settings of one Ray cluster: its address, its token, the code and the environments of its jobs."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from marin_resources.configuration.settings import SettingError

START_TIMEOUT_VARIABLE = "MARIN_CLUSTER_START_TIMEOUT_S"
NODE_TYPES_VARIABLE = "MARIN_CLUSTER_NODE_TYPES"
"""Both of the deployment; a submitter sets them in the environment of each job too."""
DEFAULT_START_TIMEOUT_S = 600.0
FAKE_VARIABLE = "MARIN_FAKE_TPU"
"""Set on a node that only pretends to have a TPU."""
LOCAL = "local"
"""Stands for the address of the cluster of `marin cluster local up`."""


class CodeMode(enum.StrEnum):
    """The source of a job's code."""

    SHIP = "ship"
    """The submitter's working directory, packed and uploaded."""
    IMAGE = "image"
    """The code of the node's image."""


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """One Ray cluster and how this deployment uses it."""

    address: str
    """URL of the dashboard, for example "http://10.0.0.5:8265"."""
    token_path: str | None = None
    """A file with the token; if None, Ray's own places are searched."""
    token_secret: str | None = None
    """The token in Google's Secret Manager: "projects/p/secrets/s" or with "/versions/v"."""
    code: CodeMode = CodeMode.SHIP
    working_dir: str | None = None
    """The folder to ship; the project's root if None."""
    image_root: str | None = None
    """The folder of the image's code on a node; None if the code is installed as a package."""
    environments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Path of a Python on the nodes -> its extras. Empty: the `python` of a node has them all."""
    start_timeout_s: float = DEFAULT_START_TIMEOUT_S
    """Time limit for a step that no node could hold: a cluster takes minutes to grow. A busy node is awaited without
    limit."""
    node_types: tuple[Mapping[str, float], ...] = ()
    """The resources of each kind of node that the cluster's autoscaler may add, by Ray's names. A step that one of
    them could hold is awaited without limit too."""
    outage_timeout_s: float = 1800.0
    """Time limit for retries of requests to a dashboard that does not answer."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of its jobs, beside those of the deployment that are forwarded."""

    def __post_init__(self) -> None:
        if not self.address.startswith(("http://", "https://")) or self.address.endswith("/"):
            raise SettingError(
                f"The Ray cluster's address is {self.address!r}, expected {LOCAL!r} or the dashboard's URL, "
                "such as http://10.0.0.5:8265."
            )
        for name in ("start_timeout_s", "outage_timeout_s"):
            if not getattr(self, name) > 0:
                raise SettingError(f"The Ray cluster has {name} {getattr(self, name)!r}, expected seconds above 0.")
