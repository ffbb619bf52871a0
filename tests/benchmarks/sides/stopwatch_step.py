"""One step that does nothing but tell its times, submitted to a cluster and awaited as a run does it."""

from __future__ import annotations

import asyncio
import uuid

from ray_cluster import Cluster

from marin_resources.ray_tpu.cluster.backend import ClusterBackend
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.types.output import Output
from marin_resources.wire.outcome import End
from marin_resources.wire.task import Task


def new_task(prefix: str, *, own_job: bool | None) -> Task:
    """The task; its function writes times.json into the output."""
    output = Output(name=f"stopwatch/{uuid.uuid4().hex[:8]}", version="000000", identity=uuid.uuid4().hex)
    path = f"{prefix}/{output.relative()}"
    config = {"$dataclass": "benchmarks.sides.stopwatch:StopwatchConfig", "output_path": path}
    fn = "benchmarks.sides.stopwatch:stopwatch"
    return Task(output=output, prefix=prefix, path=path, fn=fn, config=config, own_job=own_job)


def compute(cluster: Cluster, task: Task) -> None:
    """Submit the task with a back end of its own, and wait for its success."""
    settings = ClusterSettings(address=cluster.address, token_path=cluster.token_path)
    backend = ClusterBackend(settings, run_id=None)

    async def submit_and_wait() -> None:
        await backend.attempt_for(task.path)  # a new output: it is 1
        outcome = await backend.wait(await backend.submit(task), lambda line: None)
        assert outcome.end is End.SUCCESS, outcome

    asyncio.run(submit_and_wait())
    backend.shutdown()
