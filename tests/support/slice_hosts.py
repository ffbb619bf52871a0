"""The hosts of the slices that the Google Cloud of the tests has: processes that run the start-up script."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
from fake_google.server import FakeGoogle
from ray_cluster import Cluster as RayCluster
from running import ROOT

from marin_resources.hardware.catalogue import find_slice_type

STUBS = ROOT / "tests/support/on_a_slice"

RAY_ARGUMENTS = (
    "--temp-dir={folder}",
    "--num-cpus=1",
    """--resources='{{"TPU":4}}'""",
    "--object-store-memory=80000000",
    "--dashboard-agent-listen-port=0",
    "--dashboard-agent-grpc-port=0",
)
"""Several hosts share this machine, and it has no chips."""


class Hosts:
    """`boot` starts what is new, and ends what is gone."""

    def __init__(self, google: FakeGoogle, ray: RayCluster, folder: Path) -> None:
        self.google = google
        self.ray = ray
        self.folder = folder
        self.up: dict[str, list[psutil.Process]] = {}
        self._numbers = itertools.count()
        self._short = tempfile.TemporaryDirectory(prefix="h", dir="/tmp")  # paths of sockets have 107 characters

    def boot(self) -> None:
        """Boot the hosts of each slice that is ready, and take away those of each that is not there any more."""
        self.google.world.settle()
        ready = {
            path.rpartition("/")[2]: node for path, node in self.google.world.nodes.items() if node["state"] == "READY"
        }
        for name in self.up.keys() - ready.keys():
            self.take_away(name)
        for name in ready.keys() - self.up.keys():
            kind = find_slice_type(ready[name]["acceleratorType"])
            assert kind is not None
            script = ready[name]["metadata"]["startup-script"]
            self.up[name] = [self._boot(name, script, worker, kind.topology, kind.kind) for worker in range(kind.hosts)]

    def take_away(self, name: str) -> None:
        """Kill all that runs on the slice's hosts."""
        for each in self.up.pop(name, []):
            mark = f"{self.folder}/{name}-"
            for process in psutil.process_iter(["pid"]):
                try:
                    if process.environ().get("DOCKER_LOG", "").startswith(mark):
                        process.send_signal(signal.SIGKILL)
                except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                    continue
            each.wait(30)

    def end(self) -> None:
        for name in list(self.up):
            self.take_away(name)
        self._short.cleanup()

    def log(self, name: str, worker: int) -> str:
        return (self.folder / f"{name}-{worker}.log").read_text()

    def _boot(self, name: str, script: str, worker: int, topology: str, kind: str) -> psutil.Process:
        here = self.folder / f"{name}-{worker}"
        here.mkdir()
        environment = {
            **os.environ,
            **self.google.environment,
            "PATH": f"{STUBS}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DOCKER_LOG": f"{here}.log",
            "DOCKER_FAILS": f"{here}.fails",
            "RAY_AUTH_TOKEN_PATH": str(here / ".ray/auth_token"),
            "HEAD": f"127.0.0.1:{self.ray.gcs_port}",
            "HOST_ARGUMENTS": " ".join(RAY_ARGUMENTS).format(folder=f"{self._short.name}/{next(self._numbers)}"),
            "TPU_NAME": name,
            "TPU_WORKER_ID": str(worker),
            "TPU_ACCELERATOR_TYPE": kind,
            "TPU_TOPOLOGY": topology,
            "DASHBOARD_METRIC_PORT": "0",
            "RAY_agent_register_timeout_ms": "120000",
            "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
        }
        environment.pop("RAY_ADDRESS", None)
        Path(f"{here}.fails").write_text("2")  # the registry has a bad minute
        process = subprocess.Popen(["bash", "-c", script], env=environment, cwd=here, stdin=subprocess.DEVNULL)
        return psutil.Process(process.pid)
