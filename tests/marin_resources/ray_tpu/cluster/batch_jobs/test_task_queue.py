"""Messages to a batch job: each arrives once and in order, from several processes, until the task queue is closed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from marin_resources.ray_tpu.cluster.batch_jobs.task_queue import (
    Message,
    TaskQueue,
    TaskQueueClosedError,
    TaskQueueError,
    task_queue_path,
)
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join


def test_messages_arrive_once_and_in_their_order(any_prefix: str) -> None:
    path = task_queue_path(any_prefix, "carrier-1")
    post, read = TaskQueue(path), TaskQueue(path)
    assert list(read.new()) == []
    post.post(Message(run=("a", "b")))
    post.post(Message(stop=("a",)))
    assert list(read.new()) == [Message(run=("a", "b")), Message(stop=("a",))]
    post.post(Message(end=True))
    assert list(read.new()) == [Message(end=True)]
    assert list(read.new()) == []


def test_of_several_that_post_at_once_no_message_is_lost(disk_or_gcs_prefix: str) -> None:
    path = task_queue_path(disk_or_gcs_prefix, "carrier-1")
    boxes = [TaskQueue(path) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for number in range(5):
            list(pool.map(lambda at, n=number: boxes[at].post(Message(run=(f"{at}-{n}",))), range(4)))
    arrived = [note for message in TaskQueue(path).new() for note in message.run]
    assert sorted(arrived) == sorted(f"{at}-{n}" for at in range(4) for n in range(5))


def test_a_closed_task_queue_takes_nothing_and_one_with_a_new_message_is_not_closed(any_prefix: str) -> None:
    path = task_queue_path(any_prefix, "carrier-1")
    batch_job, run = TaskQueue(path), TaskQueue(path)
    run.post(Message(run=("a",)))
    assert not batch_job.close()
    assert list(batch_job.new()) == [Message(run=("a",))]
    assert batch_job.close()
    with pytest.raises(TaskQueueClosedError, match=r"carrier-1' has ended"):
        run.post(Message(run=("b",)))


@pytest.mark.parametrize("data", [b"", b"[]", b'{"format_version": 1, "run": "a"}', b'{"format_version": 99}'])
def test_a_damaged_message_is_one_sentence_with_its_path(disk_prefix: str, data: bytes) -> None:
    path = task_queue_path(disk_prefix, "carrier-1")
    write_bytes(join(path, "1.json"), data)
    with pytest.raises(TaskQueueError, match=r"carriers/carrier-1/1\.json"):
        list(TaskQueue(path).new())
