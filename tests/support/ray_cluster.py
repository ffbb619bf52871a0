"""A real Ray cluster on loopback, with tokens, whose parts a test can kill or freeze.

    with Cluster(cpus=2) as cluster:
        node = cluster.add_node({"TPU": 4})
        cluster.freeze_dashboard(); cluster.thaw()
        cluster.kill_node(node)
        cluster.kill_head(); cluster.restart_head()

Several clusters on one machine are independent. A cluster ends by itself when its process is killed.
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

from marin_resources.ray_tpu.cluster.local import fake_slices, local_cluster
from marin_resources.ray_tpu.cluster.local import head as local_head
from marin_resources.ray_tpu.cluster.local import processes as local_processes
from marin_resources.ray_tpu.cluster.local.state import FakeHost, LocalCluster, write_cluster
from marin_resources.ray_tpu.cluster.settings import ClusterSettings, CodeMode

NODE_TIMEOUT_S = 60


class NodeTimedOutError(RuntimeError):
    """Ray gave the node's daemon 30 s, and this machine took longer: another start may do it."""


@dataclass(frozen=True)
class Node:
    """A node that joined the head: a raylet with its agents and workers."""

    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid


class Cluster:
    def __init__(self, cpus: int = 2) -> None:
        self.state = Path(tempfile.mkdtemp(prefix="marin-cluster-", dir="/tmp"))
        """The value of MARIN_STATE_DIR with which MARIN_CLUSTER=local is this cluster."""
        self.secrets = self.state / "secrets"
        """The folder of this cluster's secrets on its nodes."""
        self.secrets.mkdir()
        self._guard = _start_watchdog(self.state)
        self._frozen: list[psutil.Process] = []
        self._cluster = self._up(cpus)

    @property
    def address(self) -> str:
        """URL of the dashboard."""
        return self._cluster.address

    @property
    def local(self) -> LocalCluster:
        """Its record."""
        return self._cluster

    @property
    def token_path(self) -> str:
        return self._cluster.token_path

    @property
    def gcs_port(self) -> int:
        return self._cluster.gcs_port

    @property
    def temp_dir(self) -> str:
        """The folder of Ray's own files."""
        return f"{self._cluster.temp_dir}/r"

    @property
    def head_pid(self) -> int:
        assert self._cluster.pid is not None
        return self._cluster.pid

    def settings(self, *, address: str | None = None, code: CodeMode = CodeMode.IMAGE) -> ClusterSettings:
        """The settings for its use; `address` is that of a proxy before it."""
        return ClusterSettings(address=address or self.address, token_path=self.token_path, code=code)

    def add_node(
        self, resources: Mapping[str, float] | None = None, *, cpus: float = 1, temp_dir: str | None = None
    ) -> Node:
        """Add a node with these resources and CPUs; return when the cluster knows it. A node with its own `temp_dir`
        has its own logs and packages, like another machine."""
        for _ in range(local_head.STARTS - 1):
            try:
                return self._add_node(resources, cpus, temp_dir)
            except NodeTimedOutError:  # the machine is busy
                continue
        return self._add_node(resources, cpus, temp_dir)

    def add_slice(self, kind: str, name: str) -> tuple[FakeHost, ...]:
        """Add a fake slice; return its hosts, by TPU worker id, when the cluster knows them."""
        with self._nodes_environment():
            return fake_slices.start_slice(self._cluster, name, kind)

    def kill_host(self, host: FakeHost) -> None:
        """Kill a host of a fake slice and all its processes, as if it was preempted without a notice."""
        fake_slices.kill_slice([host])

    def _add_node(self, resources: Mapping[str, float] | None, cpus: float, temp_dir: str | None) -> Node:
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
        while not local_head.nodes_alive(self._cluster) - before:
            if process.poll() is not None or time.monotonic() > give_up:
                tail = local_head.log_tail(self._cluster)
                _kill_session(process.pid)
                kind = NodeTimedOutError if local_head.TIMED_OUT in tail else RuntimeError
                raise kind(f"A node did not join {self.address}:\n{tail}")
            time.sleep(local_head.POLL_S)
        return Node(process)

    def kill_node(self, node: Node) -> None:
        """Kill a node and all its processes, as if its machine failed. The head detects that within seconds."""
        _kill_session(node.pid)
        node.process.wait()

    def freeze_dashboard(self) -> None:
        """Stop the dashboard: it accepts connections and does not respond until `thaw()`."""
        self._frozen = [each for each in psutil.Process(self.head_pid).children() if "dashboard.py" in _words(each)]
        assert self._frozen, "the head has no dashboard"
        for process in self._frozen:
            process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        for process in self._frozen:
            process.send_signal(signal.SIGCONT)
        self._frozen = []

    def kill_head(self) -> None:
        """Kill the head and all its processes. Processes on other nodes keep running."""
        _kill_session(self.head_pid)
        self._frozen = []

    def restart_head(self) -> None:
        """Start a new head at the same addresses with the same token. It does not know the jobs of the old one."""
        for _ in range(local_head.STARTS - 1):
            try:
                return self._start_head()
            except local_head.HeadTimedOutError:  # the machine is busy
                _kill_session(self.head_pid)
        return self._start_head()

    def _start_head(self) -> None:
        # Ray refuses an address that this file names while a node of it is alive.
        Path(self.temp_dir, "ray_current_cluster").unlink(missing_ok=True)
        with self._nodes_environment():
            self._cluster = local_cluster.with_head(self._cluster, local_head.start_head(self._cluster))
        write_cluster(self.state, self._cluster)
        local_head.await_head(self._cluster)

    def down(self) -> None:
        """End the cluster and all its processes."""
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
        """Set the folder of secrets for processes that are started in the block, and for their jobs."""
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
    """Kill the processes of the session, and their children."""
    session = [each for each in psutil.process_iter() if _session(each.pid) == pid]
    local_processes.kill(local_processes.with_children(session))


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _words(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


def _start_watchdog(state: Path) -> subprocess.Popen[bytes]:
    """A process that ends the cluster when its standard input is closed: by `down`, or by our death."""
    return subprocess.Popen([sys.executable, __file__, str(state)], stdin=subprocess.PIPE, start_new_session=True)


def _guard(state: Path) -> None:
    sys.stdin.read()
    local_cluster.down(state=state)
    shutil.rmtree(state)


if __name__ == "__main__":
    _guard(Path(sys.argv[1]))
