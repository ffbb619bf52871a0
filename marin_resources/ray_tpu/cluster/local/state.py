"""The state of this machine's own Ray cluster: a record and a token in a folder of the user.

MARIN_STATE_DIR   the folder     default: $XDG_STATE_HOME/marin, else ~/.local/state/marin
cluster.json      the record: the cluster's addresses and the process of its head
cluster.token     the token, readable by the user only
cluster.log       the output of the head
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from marin_resources.ray_tpu.cluster.api.token import write_private
from marin_resources.ray_tpu.cluster.errors import ClusterError


class LocalClusterError(ClusterError):
    """The cluster of this machine cannot be started or ended: one sentence, sometimes with the end of a log."""


@dataclass(frozen=True, kw_only=True)
class FakeHost:
    """A host of a slice that this machine pretends to have: a node of the cluster."""

    slice: str
    """The name of its slice."""
    kind: str
    """The type of its slice: "v4-16"."""
    worker: int
    """The TPU worker id of the host."""
    pid: int
    started: float
    """When that process began, in seconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class LocalCluster:
    """A Ray cluster of `marin cluster local up`."""

    id: str
    """Set in the environment of all its processes."""
    host: str
    address: str
    """URL of the dashboard."""
    cpus: int
    gcs_port: int
    dashboard_port: int
    client_port: int
    temp_dir: str
    """A folder for its user alone, in which Ray's files are: logs, sockets, packages of jobs."""
    token_path: str
    log_path: str
    """The output of the head."""
    pid: int | None = None
    """Process id of the head. None while it starts."""
    started: float | None = None
    """When that process began, in seconds since 1970: a later process may have the same id."""
    fake_hosts: tuple[FakeHost, ...] = ()


def state_folder(state: Path | None = None) -> Path:
    """Return the folder; create it for this user only if it is missing."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = Path(state or os.environ.get("MARIN_STATE_DIR") or Path(home) / "marin").absolute()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Keep other processes from starting or ending the cluster during the block. The lock ends with this process."""
    fd = os.open(folder / "cluster.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def read_cluster(folder: Path) -> LocalCluster | None:
    path = folder / "cluster.json"
    try:
        fields = json.loads(path.read_text())
        hosts = tuple(FakeHost(**host) for host in fields.pop("fake_hosts", ()))
        cluster = LocalCluster(**fields, fake_hosts=hosts)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, AttributeError) as error:
        raise LocalClusterError(
            f"The record '{path}' of the local cluster cannot be read ({error}). End its processes and delete the file."
        ) from None
    if cluster.host != os.uname().nodename:
        raise LocalClusterError(
            f"The local cluster of {str(folder)!r} belongs to the machine {cluster.host!r}, and this is "
            f"{os.uname().nodename!r}. Set MARIN_STATE_DIR to another folder, or delete {str(path)!r} if that machine "
            "is gone."
        )
    return cluster


def write_cluster(folder: Path, cluster: LocalCluster) -> None:
    write_private(folder / "cluster.json", json.dumps(dataclasses.asdict(cluster), indent=2))


def delete_record(folder: Path) -> None:
    for name in ("cluster.json", "cluster.token"):
        (folder / name).unlink(missing_ok=True)


def make_token(folder: Path) -> str:
    """Write a new token; return the path of its file."""
    path = folder / "cluster.token"
    write_private(path, secrets.token_hex(32))
    return str(path)
