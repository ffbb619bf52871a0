"""The settings of the Ray cluster from environment variables.

MARIN_CLUSTER                   its dashboard, http://host:8265, or `local`     default: none, Ray in the run itself
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
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from marin_resources.ray_tpu.cluster.settings import LOCAL, ClusterSettings, CodeMode
from marin_resources.ray_tpu.environment.extras import known_extras
from marin_resources.settings import SettingError

VARIABLE = "MARIN_CLUSTER"


def settings_from_env(cluster: str | None, **overrides: Any) -> ClusterSettings | None:
    """Return the settings of the cluster at this address, else of MARIN_CLUSTER; None if neither is set.

    `overrides` are fields of ClusterSettings that take precedence over the environment unless they are None.
    Raise SettingError: one sentence with the variable and its value.
    """
    address = (cluster or os.environ.get(VARIABLE) or "").strip()
    if not address:
        return None
    given = {name: value for name, value in overrides.items() if value is not None}
    fields = {**_fields_from_env(os.environ), **given}
    if address == LOCAL:
        return ClusterSettings(**{**fields, **_local()})
    what = VARIABLE if not cluster else "The Ray cluster's address"
    return ClusterSettings(address=_checked_address(address, what), **fields)


def check_environment() -> None:
    """Check all variables of a cluster, without a look at one. Raises SettingError."""
    _fields_from_env(os.environ)
    address = os.environ.get(VARIABLE, "").strip()
    if address and address != LOCAL:
        _checked_address(address, VARIABLE)


def _local() -> dict[str, Any]:
    # late, for its weight: psutil and subprocesses serve a local cluster alone
    from marin_resources.ray_tpu.cluster.local import local_cluster

    found = local_cluster.find()
    if found is None:
        raise SettingError("No local cluster is up on this machine. Start it: marin cluster local up")
    return {"address": found.address, "token_path": found.token_path, "token_secret": None}


def _checked_address(address: str, what: str) -> str:
    expected = f"expected {LOCAL!r} or the dashboard's URL, such as http://10.0.0.5:8265"
    if "@" in address:
        raise SettingError(f"{what} has a user or a password in it, {expected}, and the token in a file of its own.")
    try:
        url = urlsplit(address)
        valid = url.scheme in ("http", "https") and url.hostname and (url.port is None or url.port > 0)
    except ValueError:
        valid = None
    if not valid:
        raise SettingError(f"{what} is {address!r}, {expected}.")
    if url.path.strip("/") or url.query or url.fragment:
        raise SettingError(f"{what} is {address!r}, {expected}, without anything behind the port.")
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
                known = ", ".join(sorted(known_extras()))
                raise SettingError(f"{name} has the extra {extra!r} in it, expected some of {known}.")
    return environments


def parse_node_types(value: str, name: str) -> tuple[dict[str, float], ...]:
    """Parse a JSON list of the resources of nodes. Raises SettingError."""
    try:
        found = json.loads(value)
        return tuple({str(key): _amount(amount) for key, amount in node.items()} for node in found)
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
