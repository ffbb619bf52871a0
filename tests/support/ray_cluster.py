"""A real Ray cluster on loopback, with tokens, that a test can hurt.

    with Cluster(cpus=2) as cluster:
        node = cluster.add_node({"TPU": 4})
        cluster.freeze_dashboard(); cluster.thaw()
        cluster.kill_node(node)
        cluster.kill_head(); cluster.restart_head()

Several of them on one machine do not see each other. One whose process is killed ends by itself.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psutil
import pytest

from marin_resources.ray_tpu.cluster.local import head as local_head
from marin_resources.ray_tpu.cluster.local import local_cluster
from marin_resources.ray_tpu.cluster.local import processes as local_processes
from marin_resources.ray_tpu.cluster.local.state import LocalCluster, write_cluster
from marin_resources.ray_tpu.cluster.settings import ClusterSettings, CodeMode

NODE_TIMEOUT_S = 60


@dataclass(frozen=True)
class Node:
    """One that joined the head: a raylet with its agents and workers."""

    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid


class Cluster:
    def __init__(self, cpus: int = 2) -> None:
        self.state = Path(tempfile.mkdtemp(prefix="marin-cluster-", dir="/tmp"))
        """What `MARIN_STATE_DIR` has to be for MARIN_CLUSTER=local to be this cluster."""
        self.secrets = self.state / "secrets"
        """Where the nodes of this cluster look for secrets."""
        self.secrets.mkdir()
        self._guard = _start_guard(self.state)
        self._frozen: list[psutil.Process] = []
        self._cluster = self._up(cpus)

    @property
    def address(self) -> str:
        """Of the dashboard."""
        return self._cluster.address

    @property
    def local(self) -> LocalCluster:
        """As its record has it."""
        return self._cluster

    @property
    def token_path(self) -> str:
        return self._cluster.token_path

    @property
    def temp_dir(self) -> str:
        """Ray's own files."""
        return self._cluster.temp_dir

    @property
    def head_pid(self) -> int:
        assert self._cluster.pid is not None
        return self._cluster.pid

    def settings(self, *, address: str | None = None, code: CodeMode = CodeMode.IMAGE) -> ClusterSettings:
        """To use it; at `address` if something stands between."""
        return ClusterSettings(address=address or self.address, token_path=self.token_path, code=code)

    def add_node(
        self, resources: Mapping[str, float] | None = None, *, cpus: float = 1, temp_dir: str | None = None
    ) -> Node:
        """A node with these resources beside its CPUs. Returns when the cluster knows it. With a `temp_dir` of its own
        it has its own logs and packages, as another machine has."""
        before = local_head.nodes_alive(self._cluster)
        with self._nodes_environment():
            process = local_head.start_ray(
                self._cluster,
                f"--address=127.0.0.1:{self._cluster.gcs_port}",
                f"--num-cpus={cpus:g}",
                f"--resources={json.dumps(dict(resources or {}))}",
                *([] if temp_dir is None else [f"--temp-dir={temp_dir}"]),
            )
        give_up = time.monotonic() + NODE_TIMEOUT_S
        while local_head.nodes_alive(self._cluster) <= before:
            if process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"A node did not join {self.address}:\n{local_head.log_tail(self._cluster)}")
            time.sleep(local_head.POLL_S)
        return Node(process)

    def kill_node(self, node: Node) -> None:
        """At once, with all that runs on it, as when a machine goes. The head finds out by itself, within seconds."""
        _kill_session(node.pid)
        node.process.wait()

    def freeze_dashboard(self) -> None:
        """It takes connections and answers nothing, until `thaw()`."""
        self._frozen = [each for each in psutil.Process(self.head_pid).children() if "dashboard.py" in _words(each)]
        assert self._frozen, "the head has no dashboard"
        for process in self._frozen:
            process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        for process in self._frozen:
            process.send_signal(signal.SIGCONT)
        self._frozen = []

    def kill_head(self) -> None:
        """At once, with all that runs on it. What runs on other nodes goes on."""
        _kill_session(self.head_pid)
        self._frozen = []

    def restart_head(self) -> None:
        """A new head at the same addresses, with the same token. Of the jobs of the old one it knows nothing."""
        # Ray refuses an address that this file names while a node of it is alive.
        Path(self.temp_dir, "ray_current_cluster").unlink(missing_ok=True)
        with self._nodes_environment():
            self._cluster = local_cluster.with_head(self._cluster, local_head.start_head(self._cluster))
        write_cluster(self.state, self._cluster)
        local_head.await_head(self._cluster)

    def down(self) -> None:
        """End it, and all that is left of it."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        if self._guard.wait(60) != 0:
            raise RuntimeError(f"The cluster of {str(self.state)!r} could not be ended: see above.")

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.down()

    @contextmanager
    def _nodes_environment(self) -> Iterator[None]:
        """Processes that are started in the block, and their jobs, find their secrets."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MARIN_SECRETS_DIR", str(self.secrets))
            yield

    def _up(self, cpus: int) -> LocalCluster:
        try:
            with self._nodes_environment():
                return local_cluster.up(cpus=cpus, state=self.state)
        except BaseException:
            self.down()
            raise


def _kill_session(pid: int) -> None:
    """The process, those of its session, and what they have started."""
    session = [each for each in psutil.process_iter() if _session(each.pid) == pid]
    local_processes.kill(local_processes.with_children(session))


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _words(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


def _start_guard(state: Path) -> subprocess.Popen[bytes]:
    """A process that ends the cluster with its standard input: when it is told to, and when we die."""
    return subprocess.Popen([sys.executable, __file__, str(state)], stdin=subprocess.PIPE, start_new_session=True)


def _guard(state: Path) -> None:
    sys.stdin.read()
    local_cluster.down(state=state)
    shutil.rmtree(state)


if __name__ == "__main__":
    _guard(Path(sys.argv[1]))
