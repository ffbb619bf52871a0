"""The way of one output when it lies in a bucket: real Ray, a real worker, GCS."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gated_steps
import pytest
from gated_steps import GatedConfig, told_of
from running import wait_until

from marin_assets import Step
from marin_assets.assets.body.request import build_request
from marin_assets.step.graph import build_graph
from marin_resources.orchestrator.produce import Produced, ProduceRequest, RunCallbacks, produce
from marin_resources.ray_tpu.local.backend import LocalBackend
from marin_resources.storage.files import read_from
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.text import TTL_VARIABLE
from marin_resources.storage.output.attempts import log_path, read_attempt
from marin_resources.storage.output.store import Store

LONE_WORKER = Path(gated_steps.__file__).with_name("lone_worker.py")
TTL_S = 4.0


@pytest.fixture(scope="module")
def backend(shared_ray: None) -> Iterator[LocalBackend]:
    backend = LocalBackend(cpus=2)
    yield backend
    backend.shutdown()


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A local folder in which processes tell that they work; they wait while its gate is there."""
    folder = tmp_path / "told"
    folder.mkdir()
    (folder / "gate").touch()
    return folder


class Orchestrator:
    def __init__(self, prefix: str, told: Path, backend: LocalBackend) -> None:
        self.store, self.backend, self.said, self.log = Store(prefix), backend, list[str](), list[str]()
        self.step = Step(name="toy/gated", fn=gated_steps.wait_with_a_child, config=GatedConfig(told=str(told)))

    def request(self) -> ProduceRequest:
        graph = build_graph([self.step])
        return build_request(graph[self.step], graph, self.store, "run-1")

    async def produce(self) -> Produced:
        return await produce(
            self.request(),
            self.store,
            lambda: self.backend,
            callbacks=RunCallbacks(log=self.said.append, on_log=self.log.append),
        )


@pytest.fixture
def orchestrator(gcs_prefix: str, told: Path, backend: LocalBackend) -> Orchestrator:
    return Orchestrator(gcs_prefix, told, backend)


def test_it_is_made_once_and_its_log_is_in_the_bucket(orchestrator: Orchestrator, told: Path) -> None:
    (told / "gate").unlink()
    first, second = asyncio.run(orchestrator.produce()), asyncio.run(orchestrator.produce())
    assert (first.reused, second.reused) == (False, True)
    assert first.observed.path.startswith("gs://")
    assert first.observed.record.manifest.files == 2
    assert read_attempt(first.observed.path, 1)["outcome"] == "success"
    assert read_from(log_path(first.observed.path, 1), 0) == b""  # it printed nothing, and the log is there


def test_a_killed_worker_is_followed_at_once_and_not_after_its_lease(orchestrator: Orchestrator, told: Path) -> None:
    """Ray tells that it is dead, so nobody waits the 90 s."""

    async def kill_and_go_on() -> Produced:
        run = asyncio.create_task(orchestrator.produce())
        pids = await asyncio.to_thread(wait_until, told_of(told, 2), "the worker")
        (told / "gate").unlink()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return await run

    produced = asyncio.run(asyncio.wait_for(kill_and_go_on(), 60))
    assert produced.lost_workers == 1
    assert read_attempt(produced.observed.path, 1)["outcome"] == "stopped"
    assert read_attempt(produced.observed.path, 2)["outcome"] == "success"


@pytest.mark.long
def test_a_deployment_that_is_gone_is_waited_for_by_name_and_then_followed(
    orchestrator: Orchestrator, told: Path
) -> None:
    task = orchestrator.request().task(1, {}, None)
    env = {**os.environ, TTL_VARIABLE: str(TTL_S)}
    worker = subprocess.Popen([sys.executable, str(LONE_WORKER)], stdin=subprocess.PIPE, text=True, env=env)
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(task.to_dict()))
    worker.stdin.close()
    pids = wait_until(told_of(told, 2), "the lone worker")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    worker.wait()
    holder = lease.holder_of(task.path)
    assert holder is not None
    (told / "gate").unlink()
    produced = asyncio.run(orchestrator.produce())
    assert produced.waited_s > TTL_S
    assert f"waiting, as it is being computed by process {holder.pid} on {holder.host}" in orchestrator.said[0]
    assert "last heartbeat 20" in orchestrator.said[0]
    assert "no sign of life for 4 s, so it is taken over" in orchestrator.said[1]
    assert read_attempt(produced.observed.path, 2)["outcome"] == "success"
