"""The process of a batch job, which reads its task queue. No Ray: none of these steps begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job_process import new_job

from marin_resources.ray_tpu.cluster.batch_jobs.task_queue import Message, TaskQueue
from marin_resources.ray_tpu.job import retry
from marin_resources.ray_tpu.job.batch_job import BatchJobServer
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.notes.job_notes import add_stop


class FailingTaskQueue(TaskQueue):
    """Its store fails once after each message."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.failed = set[int]()

    def _read(self, number: int) -> Message | None:
        if number > 1 and number not in self.failed:
            self.failed.add(number)
            raise UnavailableError("The store is away.")
        return super()._read(number)


def test_messages_arrive_though_the_store_fails_between_them_and_a_stopped_step_is_closed(
    disk_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_PAUSE_S", 0.0)
    jobs = [new_job(f"{disk_prefix}/{n}", tmp_path / f"code-{n}") for n in range(2)]
    path = f"{disk_prefix}/.marin/carriers/c"
    post = TaskQueue(path).post
    for job in jobs:
        add_stop(job.path, "ann", "wrong data")
        post(Message(run=(job.path,)))
    post(Message(end=True))
    task_queue = FailingTaskQueue(path)
    no_ray: Any = None
    BatchJobServer(task_queue=task_queue, ray=no_ray, poll_s=0.01).serve()
    assert task_queue.failed >= {2, 3}
    assert [job.note().ended for job in jobs] == ["it was stopped before it began"] * 2
    assert not Path(path).exists()
