"""The settings of the Ray cluster from environment variables.

MARIN_CLUSTER                   its dashboard, http://host:8265, or `local`     default: none, Ray in the run itself
                                or its name in the catalogue of clusters; several, between commas, are a fleet
MARIN_CLUSTER_CODE              ship or image: the source of a job's code        default: ship
MARIN_CLUSTER_WORKING_DIR       the folder to ship                               default: the project's root
MARIN_CLUSTER_IMAGE_ROOT        that folder in the image                         default: its code is installed
MARIN_CLUSTER_ENVIRONMENTS      python=extra+extra,python=extra: on the nodes    default: one `python` has them all
MARIN_CLUSTER_START_TIMEOUT_S   how long a step waits if no node could hold it   default: 600
MARIN_CLUSTER_NODE_TYPES        what nodes the autoscaler may add, as JSON        default: none
                                [{"CPU": 96, "memory": 3e11}, {"CPU": 120, "TPU-v4-8-head": 1}]
MARIN_CLUSTER_OUTAGE_TIMEOUT_S  how long requests to it are retried              default: 1800
MARIN_CLUSTER_TOKEN_SECRET      the token in Google's Secret Manager: projects/p/secrets/s
RAY_AUTH_TOKEN_PATH             a file with the token, as for Ray itself
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from marin_resources.clusters.catalogue import find_cluster
from marin_resources.clusters.cluster import CatalogueError, Cluster
from marin_resources.configuration.settings import SettingError
from marin_resources.ray_tpu.cluster.settings import LOCAL, ClusterSettings, CodeMode
from marin_resources.ray_tpu.environment.extras import known_extras

VARIABLE = "MARIN_CLUSTER"
NAMES = re.compile(r"[a-z0-9-]+(\s*,\s*[a-z0-9-]*)*")
"""Names of clusters: an address has a colon."""
HOST = {"CPU": 240.0, "memory": 720.0 * 2**30}
"""Maximum resources of a host of a slice: v4 has the most CPUs, v6e the most memory
(cloud.google.com/tpu/docs/system-architecture-tpu-vm). Its real resources are known when it is up."""
EXPECTED = f"expected {LOCAL!r} or the dashboard's URL, such as http://10.0.0.5:8265"
MOST_MEMORY = 2.0**50
TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "MARIN_CLUSTER_TOKEN_SECRET")
"""One of these takes the place of the secret in the catalogue."""


def settings_from_env(cluster: str | None, **overrides: Any) -> ClusterSettings | None:
    """Return the settings of the cluster at this address or of this name, else of MARIN_CLUSTER; None if neither is
    set.

    `overrides` are fields of ClusterSettings that take precedence over the environment unless they are None.
    Raise SettingError: one sentence with the variable and its value.
    """
    address = (cluster or os.environ.get(VARIABLE) or "").strip()
    if not address:
        return None
    given = {name: value for name, value in overrides.items() if value is not None}
    fields = {**_fields_from_env(os.environ), **given}
    if names := cluster_names(cluster):
        if len(names) > 1:
            raise SettingError(f"{VARIABLE} is {address!r}. Which of them? --cluster {' or '.join(names)}.")
        return ClusterSettings(**_with_catalogue(named_cluster(names[0], cluster), fields))
    if address == LOCAL:
        return ClusterSettings(**{**fields, **_local()})
    origin = VARIABLE if not cluster else "The Ray cluster's address"
    return ClusterSettings(address=_checked_address(address, origin), **fields)


def is_on_cluster(cluster: str | None) -> bool:
    """Whether steps run on a cluster or a fleet: that of `cluster`, else of MARIN_CLUSTER. Raises SettingError."""
    return bool(cluster_names(cluster)) or settings_from_env(cluster) is not None


def each_from_env() -> list[ClusterSettings]:
    """The settings of every cluster of MARIN_CLUSTER; none if it is not set. Raises SettingError."""
    names = cluster_names(None)
    clusters = [settings_from_env(name) for name in names] if names else [settings_from_env(None)]
    return [settings for settings in clusters if settings is not None]


def cluster_names(cluster: str | None) -> list[str]:
    """The names of `cluster`, else of MARIN_CLUSTER, in the catalogue of clusters; none if that is no name but an
    address. Raises SettingError for a name that occurs twice."""
    given = (cluster or os.environ.get(VARIABLE) or "").strip()
    if not given or given == LOCAL or not NAMES.fullmatch(given):
        return []
    names = [name.strip() for name in given.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise SettingError(f"{VARIABLE} is {given!r}, expected names of clusters between commas, each once.")
    return names


def named_cluster(name: str, cluster: str | None = None) -> Cluster:
    """The cluster of that name. `cluster`: the setting of a caller, else MARIN_CLUSTER has it. Raises SettingError."""
    origin = f"The Ray cluster's address is {cluster!r}" if cluster else f"{VARIABLE} is {os.environ[VARIABLE]!r}"
    try:
        return find_cluster(name)
    except CatalogueError as error:
        raise SettingError(f"{origin}, {EXPECTED}, or names of clusters. {error}") from None


def check_environment() -> None:
    """Check all variables of a cluster, without a look at one. Raises SettingError."""
    _fields_from_env(os.environ)
    address = os.environ.get(VARIABLE, "").strip()
    if names := cluster_names(None):
        for name in names:
            named_cluster(name)
    elif address and address != LOCAL:
        _checked_address(address, VARIABLE)


def _with_catalogue(cluster: Cluster, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a cluster: the given ones, else the catalogue's. Its own token file has priority."""
    slices = {group.slice_type.kind: group.slice_type for group in cluster.slices}
    hosts = [
        {**HOST, "TPU": slice_type.chips_per_host, f"TPU-{slice_type.kind}-head": 1} for slice_type in slices.values()
    ]
    worker = {"CPU": cluster.worker_cpus, "memory": min(cluster.worker_memory_bytes, MOST_MEMORY)}
    merged = {"address": cluster.dashboard, "node_types": (worker, *hosts), **fields}
    if cluster.token_path:
        return {**merged, "token_path": os.path.expanduser(cluster.token_path), "token_secret": None}
    has_token = any(os.environ.get(name, "").strip() for name in TOKENS)
    return merged if has_token else {"token_secret": cluster.token_resource, **merged}


def _local() -> dict[str, Any]:
    # late, for its weight: psutil and subprocesses serve a local cluster alone
    from marin_resources.ray_tpu.cluster.local import local_cluster

    cluster = local_cluster.find()
    if cluster is None:
        raise SettingError("No local cluster is up on this machine. Start it: marin cluster local up")
    return {"address": cluster.address, "token_path": cluster.token_path, "token_secret": None}


def _checked_address(address: str, origin: str) -> str:
    expected = EXPECTED
    if "@" in address:
        raise SettingError(f"{origin} has a user or a password in it, {expected}, and the token in a file of its own.")
    try:
        url = urlsplit(address)
        valid = url.scheme in ("http", "https") and url.hostname and (url.port is None or url.port > 0)
    except ValueError:
        valid = None
    if not valid:
        raise SettingError(f"{origin} is {address!r}, {expected}.")
    if url.path.strip("/") or url.query or url.fragment:
        raise SettingError(f"{origin} is {address!r}, {expected}, without anything behind the port.")
    return f"{url.scheme}://{url.netloc}"


def _fields_from_env(environ: Mapping[str, str]) -> dict[str, Any]:
    """The fields of ClusterSettings whose variable is set."""
    readers = {
        "code": ("MARIN_CLUSTER_CODE", _code),
        "working_dir": ("MARIN_CLUSTER_WORKING_DIR", _folder),
        "image_root": ("MARIN_CLUSTER_IMAGE_ROOT", _image_root),
        "environments": ("MARIN_CLUSTER_ENVIRONMENTS", _environments),
        "start_timeout_s": ("MARIN_CLUSTER_START_TIMEOUT_S", _seconds),
        "node_types": ("MARIN_CLUSTER_NODE_TYPES", parse_node_types),
        "outage_timeout_s": ("MARIN_CLUSTER_OUTAGE_TIMEOUT_S", _seconds),
        "token_secret": ("MARIN_CLUSTER_TOKEN_SECRET", _secret),
        "token_path": ("RAY_AUTH_TOKEN_PATH", lambda path, name: path),
    }
    return {
        field: read(environ[name].strip(), name)
        for field, (name, read) in readers.items()
        if environ.get(name, "").strip()
    }


def _code(value: str, name: str) -> CodeMode:
    if value not in list(CodeMode):
        raise SettingError(
            f"{name} is {value!r}, expected 'ship' (this folder's code) or 'image' (the code of the nodes' image)."
        )
    return CodeMode(value)


def _folder(value: str, name: str) -> str:
    path = os.path.abspath(os.path.expanduser(value))
    if not os.path.isdir(path):
        raise SettingError(f"{name} is {value!r}, which is not a folder. Name the folder whose code jobs run.")
    return path


def _image_root(value: str, name: str) -> str:
    if not value.startswith("/"):
        raise SettingError(f"{name} is {value!r}, expected an absolute path on the nodes, such as '/app'.")
    return value


def _environments(value: str, name: str) -> dict[str, tuple[str, ...]]:
    """ "/opt/train/bin/python=train+evaluate,/opt/vllm/bin/python=vllm" """
    environments: dict[str, tuple[str, ...]] = {}
    for item in filter(None, (item.strip() for item in value.split(","))):
        python, equals, has = item.partition("=")
        if not equals or not python or python in environments:
            expected = "expected python=extra+extra,python=extra with each python once"
            raise SettingError(f"{name} has {item!r} in it, {expected}, such as '/opt/train/bin/python=train'.")
        environments[python] = tuple(filter(None, has.split("+")))
        for extra in environments[python]:
            if extra not in known_extras():
                existing = ", ".join(sorted(known_extras()))
                raise SettingError(f"{name} has the extra {extra!r} in it, expected some of {existing}.")
    return environments


def parse_node_types(value: str, name: str) -> tuple[dict[str, float], ...]:
    """Parse a JSON list of the resources of nodes. Raises SettingError."""
    try:
        nodes = json.loads(value)
        return tuple({str(key): _amount(amount) for key, amount in node.items()} for node in nodes)
    except (ValueError, TypeError, AttributeError):
        expected = "expected a JSON list of the resources of nodes by Ray's names"
        raise SettingError(f"{name} is {value!r}, {expected}, such as '[{{\"CPU\": 96}}]'.") from None


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(value)
    return value


def _seconds(value: str, name: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise SettingError(f"{name} is {value!r}, expected seconds above 0.")
    return seconds


def _secret(value: str, name: str) -> str:
    parts = value.split("/")
    kinds = ["projects", "secrets", "versions"][: len(parts) // 2]
    if len(parts) not in (4, 6) or not all(parts) or parts[::2] != kinds:  # not shown: it may be the token itself
        raise SettingError(
            f"{name} does not name a secret, expected 'projects/<project>/secrets/<name>', or that with "
            "'/versions/<version>'."
        )
    return value
