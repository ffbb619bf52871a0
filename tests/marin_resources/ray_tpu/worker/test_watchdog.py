"""A worker that lost its lease is stopped at once, with its children and shards, and publishes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gated_steps
import object_stores
import psutil
import pytest
from gated_steps import GatedConfig, told_of
from running import alive, wait_until

from marin_resources.ray_tpu.log.attempt_log import LogFollower
from marin_resources.storage.files import remove, write_bytes
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.heartbeat import RENEWALS_IN_A_LIFE
from marin_resources.storage.lease.text import TTL_VARIABLE
from marin_resources.storage.manifest.manifest import read_manifest
from marin_resources.storage.output import attempts
from marin_resources.storage.output.store import Claim, Store
from marin_resources.storage.paths import is_local, join
from marin_resources.storage.upload.writer import writing_as
from marin_resources.types.output import Output, Status
from marin_resources.wire.config_json import encode
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.reference import reference_to
from marin_resources.wire.task import Task

TTL_S = 6.0
HEARTBEAT_S = TTL_S / RENEWALS_IN_A_LIFE
SLACK_S = 2.0
"""For a note and a kill, on a busy machine."""
X = Output(name="raw/x", version="abc123", identity="a" * 64)
LONE_WORKER = Path(gated_steps.__file__).with_name("lone_worker.py")


@pytest.fixture
def told(tmp_path: Path) -> Path:
    folder = tmp_path / "told"
    folder.mkdir()
    (folder / "gate").touch()
    return folder


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the function in a worker process, which is killed after the test."""
    started = []

    def start_worker(store: Store, fn: object, told: Path, *how: str, attempt: int = 1) -> subprocess.Popen[str]:
        path = store.locate(X)
        config: Any = encode(GatedConfig(told=str(told), output_path=path))
        task = Task(output=X, prefix=store.prefix, path=path, fn=reference_to(fn), config=config, attempt=attempt)
        worker = subprocess.Popen(
            [sys.executable, str(LONE_WORKER), *how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, TTL_VARIABLE: str(TTL_S)},
        )
        started.append(worker)
        assert worker.stdin is not None
        worker.stdin.write(json.dumps(task.to_dict()))
        worker.stdin.close()
        return worker

    yield start_worker
    for worker in started:
        worker.kill()
        worker.wait()
        assert worker.stdout is not None
        worker.stdout.close()


def take_over(store: Store) -> Claim:
    """Take over as a process that considers the holder dead. On a disk this needs the removal of the lock's file."""
    path = store.locate(X)
    holder = lease.holder_of(path)
    assert holder is not None
    if is_local(path):
        remove(join(path, lease.NAME))
    return store.claim(X, attempt=2, resumable=False, run_id=None, stale_lease=holder.generation)


def recorded_loss(path: str) -> dict[str, Any]:
    """The mark of the worker's attempt, when its watchdog has recorded the loss."""

    def note() -> dict[str, Any] | None:
        mark = attempts.read_attempt(path, 1)
        return mark if mark.get("outcome") == "lease_lost" else None

    return wait_until(note, "the loss to be recorded", timeout_s=30)


def log_of(path: str) -> str:
    lines: list[str] = []
    LogFollower(attempts.log_path(path, 1), lines.append).finish()
    return "\n".join(lines)


def require_that_the_taker_has_it(store: Store, taker: Claim) -> None:
    write_bytes(join(taker.path, "mine.txt"), b"mine")
    store.publish(taker, {}, {"by": "the taker"})
    seen = store.look([X])[X]
    assert (seen.status, seen.result, seen.holder) == (Status.SUCCESS, {"by": "the taker"}, None)
    manifest = read_manifest(taker.path)
    assert manifest is not None
    assert manifest.files == (("mine.txt", 4),)


def test_a_worker_whose_lease_is_taken_stops_within_a_heartbeat_and_publishes_nothing(
    any_prefix: str, told: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    store = Store(any_prefix)
    worker = start(store, gated_steps.wait_with_a_child, told)
    pids = wait_until(told_of(told, 2), "the step and its child")
    taker = take_over(store)
    taken_at_s = time.monotonic()
    assert worker.wait(timeout=30) == -signal.SIGKILL
    assert time.monotonic() - taken_at_s < HEARTBEAT_S + SLACK_S
    wait_until(lambda: not any(map(alive, pids)), "the killed child to be gone", timeout_s=SLACK_S)
    note = recorded_loss(taker.path)
    assert note["error"] in log_of(taker.path)
    assert "This worker stops at once and publishes nothing" in log_of(taker.path)
    require_that_the_taker_has_it(store, taker)


@pytest.mark.long
def test_shards_on_ray_stop_with_the_worker_that_gave_them(
    gcs_prefix: str, told: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    store = Store(gcs_prefix)
    driver = start(store, gated_steps.wait_in_two_shards, told, "ray")
    pids = wait_until(told_of(told, 3), "the step and two shards")
    taker = take_over(store)
    taken_at_s = time.monotonic()
    wait_until(lambda: not any(map(alive, pids)), "the worker and its shards to be gone", timeout_s=30)
    assert time.monotonic() - taken_at_s < HEARTBEAT_S + 2 * SLACK_S
    assert recorded_loss(taker.path)
    (told / "gate").unlink()
    assert driver.stdout is not None
    assert '"end": "lost"' in driver.stdout.read()
    assert driver.wait() == 0
    require_that_the_taker_has_it(store, taker)


@pytest.mark.long
def test_a_worker_whose_store_does_not_answer_stops_before_another_may_take_over(
    told: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    bucket = object_stores.gcs_bucket()
    store = Store(bucket.prefix)
    worker = start(store, gated_steps.wait_with_a_child, told)
    pids = wait_until(told_of(told, 2), "the step and its child")
    holder = lease.holder_of(store.locate(X))
    bucket.delay(600, times=None)
    silent_at_s = time.monotonic()
    assert worker.wait(timeout=30) == -signal.SIGKILL
    assert time.monotonic() - silent_at_s < TTL_S
    assert not any(map(alive, pids))
    bucket.calm()
    seen = store.look([X])[X]
    assert (seen.status, read_manifest(seen.path)) == (Status.RUNNING, None)
    assert holder is not None
    assert seen.holder is not None
    assert seen.holder.owner == holder.owner
    require_that_the_taker_has_it(store, take_over(store))


@pytest.mark.long
def test_a_worker_whose_threads_cannot_run_is_stopped_before_another_may_take_over(
    gcs_prefix: str, told: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    """C code holds the interpreter's lock, so that nobody in the process renews the lease or watches it."""
    store = Store(gcs_prefix)
    worker = start(store, gated_steps.hold_the_interpreter, told)
    wait_until(told_of(told, 1), "the step")
    began_s = time.monotonic()
    assert worker.wait(timeout=30) == -signal.SIGKILL
    assert time.monotonic() - began_s < TTL_S
    path = store.locate(X)
    assert recorded_loss(path)["error"] == "it was not renewed in time"
    assert "This worker stops at once" in log_of(path)


@pytest.mark.long
def test_a_paused_worker_never_wakes_up_without_its_lease(
    gcs_prefix: str, told: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    store = Store(gcs_prefix)
    worker = start(store, gated_steps.wait_with_a_child, told)
    pids = wait_until(told_of(told, 2), "the step and its child")
    worker.send_signal(signal.SIGSTOP)
    assert worker.wait(timeout=30) == -signal.SIGKILL
    assert not any(map(alive, pids))
    require_that_the_taker_has_it(store, take_over(store))


def test_a_worker_that_has_published_is_left_alone(
    gcs_prefix: str, told: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    store = Store(gcs_prefix)
    worker = start(store, gated_steps.wait_with_a_child, told)
    wait_until(told_of(told, 2), "the step and its child")
    [watchdog] = [
        child for child in psutil.Process(worker.pid).children() if "watchdog_process" in str(child.cmdline())
    ]
    (told / "gate").unlink()
    assert worker.wait(timeout=30) == 0
    watchdog.wait(timeout=10)
    assert store.look([X])[X].done


def test_an_attempt_that_finds_late_writes_has_failed_and_is_tried_again(
    gcs_prefix: str, told: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    store = Store(gcs_prefix)
    stale = store.claim(X, attempt=1, resumable=False, run_id=None)
    stale.lease.release()
    worker = start(store, gated_steps.wait_with_a_child, told, attempt=2)
    wait_until(told_of(told, 2), "the step and its child")
    with writing_as(stale.writer):
        write_bytes(join(stale.path, "half.txt"), b"stale")
    (told / "gate").unlink()
    assert worker.stdout is not None
    outcome = Outcome.from_dict(json.loads(worker.stdout.read()))
    assert outcome.end is End.LOST
    assert "attempt 1" in outcome.error
    assert "wrote 'half.txt' after attempt 2 had begun" in outcome.error
    assert store.look([X])[X].status is Status.FAILED
