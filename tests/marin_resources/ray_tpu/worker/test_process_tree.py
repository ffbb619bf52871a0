"""Whatever a step's function starts is gone after the step, however that ends."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

import process_shapes
import psutil
import pytest
from job_process import Job, new_job, terminate, wait_for
from process_shapes import MOVES, SHAPES, SLEEP, alive
from running import wait_until

from marin_resources.ray_tpu.worker import process_tree
from marin_resources.ray_tpu.worker.process_tree import children, kill_descendants

STEPS = """
import sys, time
sys.path.insert(0, {support!r})
import process_shapes

def start(config):
    told = process_shapes.start_all(config["folder"], config["token"])
    print("started", flush=True)
    return {{"shapes": told}}

def make(config):
    return start(config)

def fail(config):
    start(config)
    raise ValueError("no")

def wait(config):
    start(config)
    time.sleep(600)

def ignore(config):
    start(config)
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
"""


class Started:
    def __init__(self, prefix: str, folder: Path, fn: str, **task: object) -> None:
        self.token, self.folder = f"token-{uuid.uuid4().hex}", folder / "pids"
        self.folder.mkdir()
        config = {"folder": str(self.folder), "token": self.token}
        text = STEPS.format(support=str(Path(process_shapes.__file__).parent))
        self.job: Job = new_job(prefix, folder / "code", text, fn, config=config, **task)

    def left(self) -> list[str]:
        return alive(self.folder, self.token)

    def kill(self) -> None:
        """Kill what a failed test has left."""
        for process in psutil.process_iter(["cmdline"]):
            if self.token in (process.info["cmdline"] or []):
                process.kill()


@pytest.fixture
def start(disk_prefix: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Started]:
    def start(fn: str, **task: object) -> Started:
        started = Started(disk_prefix, tmp_path, fn, **task)
        request.addfinalizer(started.kill)
        return started

    return start


def test_there_are_twenty_shapes() -> None:
    assert len(SHAPES) == 20


@pytest.mark.parametrize(("fn", "end"), [("make", "success"), pytest.param("fail", "failed", marks=pytest.mark.long)])
def test_nothing_is_left_at_the_end_of_the_step(start: Callable[..., Started], fn: str, end: str) -> None:
    started = start(fn)
    _, told = started.job.run()
    assert started.job.outcome()["end"] == end, told
    assert started.left() == []


@pytest.mark.long
def test_nothing_is_left_after_the_time_limit(start: Callable[..., Started]) -> None:
    started = start("wait", timeout_s=4.0)
    assert started.job.run()[0] == -9
    assert started.left() == []


@pytest.mark.long
@pytest.mark.parametrize("fn", ["wait", "ignore"])
def test_nothing_is_left_after_a_stop(start: Callable[..., Started], fn: str) -> None:
    started = start(fn)
    process = started.job.start()
    wait_for(process, "started")
    assert len(started.left()) >= len(SHAPES)
    terminate(process)
    process.communicate()
    assert started.left() == []


def test_what_ran_before_the_step_in_its_process_goes_on(tmp_path: Path) -> None:
    older, token = subprocess.Popen([sys.executable, "-c", SLEEP]), f"token-{uuid.uuid4().hex}"
    before = children()
    try:
        subprocess.Popen([sys.executable, "-c", SLEEP, token])
        kill_descendants(but=before)
        assert alive(tmp_path, token) == []
        assert older.poll() is None
    finally:
        older.kill()
        older.wait()


def test_a_process_that_forks_and_ends_does_not_escape_on_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, before, below = f"token-{uuid.uuid4().hex}", children(), process_tree._below

    def late(pids: Iterable[int]) -> list[psutil.Process]:
        time.sleep(0.2)  # four times as long as that process lives
        return below(pids)

    monkeypatch.setattr(process_tree, "_below", late)
    process_tree.adopt_orphans()
    try:
        subprocess.Popen([sys.executable, "-c", MOVES, token])
        wait_until(lambda: alive(tmp_path, token), "the process")
        kill_descendants(but=before)
        left = alive(tmp_path, token)
        monkeypatch.undo()
        kill_descendants(but=before)
    finally:
        ctypes.CDLL(None).prctl(process_tree.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    assert left == []
