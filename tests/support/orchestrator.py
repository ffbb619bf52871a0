"""What a run does for one output on a cluster, without Dagster."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ray_cluster import Cluster
from running import ROOT

from marin_assets import Step
from marin_assets.assets.body.request import build_request
from marin_assets.step.graph import build_graph
from marin_resources.orchestrator.produce import Produced, ProduceError, RunCallbacks, produce
from marin_resources.ray_tpu.cluster.backend import ClusterBackend
from marin_resources.ray_tpu.cluster.settings import CodeMode
from marin_resources.storage.output.notes import job_notes
from marin_resources.storage.output.store import Store


class Orchestrator:
    """Produces steps on a cluster, in an event loop of its own, as a run does, and keeps the messages."""

    def __init__(self, prefix: Path | str, cluster: Cluster, run_id: str = "run-1", **settings: Any) -> None:
        there = cluster.settings(code=CodeMode.IMAGE)
        self.settings = dataclasses.replace(there, image_root=str(ROOT), **settings)
        self.store, self.said, self.log = Store(str(prefix)), list[str](), list[str]()
        self.run_id, self.jobs = run_id, list[str | None]()

    def produce(self, step: Step, **options: Any) -> Produced:
        return asyncio.run(self.produce_async(step, **options))

    async def produce_async(self, step: Step, **options: Any) -> Produced:
        with self.backend() as backend:
            return await self.produce_with(backend, step, **options)

    async def produce_with(self, backend: ClusterBackend, step: Step, **options: Any) -> Produced:
        """Produce one of several steps of a run."""
        graph = build_graph([step])
        request = build_request(graph[step], graph, self.store, self.run_id)
        callbacks = RunCallbacks(log=self.said.append, on_log=self.log.append, on_job=self.jobs.append)
        return await produce(request, self.store, lambda: backend, callbacks=callbacks, **options)

    @contextmanager
    def backend(self) -> Iterator[ClusterBackend]:
        backend = ClusterBackend(self.settings, run_id=self.run_id, report=self.said.append)
        try:
            yield backend
        finally:
            backend.shutdown()

    def failure(self, step: Step, **options: Any) -> ProduceError:
        with pytest.raises(ProduceError) as raised:
            self.produce(step, **options)
        return raised.value


def note_of(path: str, attempt: int = 1) -> job_notes.JobNote:
    note = job_notes.read_note(job_notes.note_path(path, attempt))
    assert note is not None
    return note
