"""A stopped job: Ray sends SIGTERM to it and its children, and kills the remaining processes 3 s later."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from job_process import Job, new_job, terminate, wait_for
from record_fields import fields_of_record

from marin_resources.ray_tpu.job.entry import EXIT_STOPPED
from marin_resources.storage.files import read_from
from marin_resources.storage.lease import lease
from marin_resources.storage.output.attempts import log_path, read_attempt
from marin_resources.storage.output.notes.job_notes import add_stop
from marin_resources.storage.output.status import read_status
from marin_resources.types.output import Status

REASON = "stopped by Dagster run 7: the run was terminated"


def stop(job: Job, process: subprocess.Popen[str]) -> str:
    """Stop the job as its orchestrator does, and return its output from now on."""
    add_stop(job.path, "Dagster run 7", "the run was terminated.")
    assert terminate(process) < 3
    assert process.returncode == EXIT_STOPPED
    return process.communicate()[0]


def assert_told(job: Job, reason: str = REASON) -> dict[str, Any]:
    """Assert that the stop is recorded beside the output, and that the next attempt can start."""
    assert lease.holder_of(job.output_path) is None
    assert read_status(job.output_path) is Status.FAILED
    mark = read_attempt(job.output_path, 1)
    assert (mark["outcome"], mark["error"]) == ("failed", reason)
    assert job.note().outcome is None, "the runs that wait read the stop in the note, and the status from Ray"
    record = fields_of_record(job.output_path)
    assert record is not None
    assert record["error"] == reason
    return record


def test_a_stopped_job_says_who_has_stopped_it_and_gives_its_lease_up(disk_or_gcs_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_or_gcs_prefix, tmp_path, fn="wait")
    process = job.start()
    wait_for(process, "waiting")
    told = stop(job, process)
    record = assert_told(job)
    assert record["timing"]["compute_s"] >= 0
    assert "in wait" in read_attempt(job.output_path, 1)["traceback"]
    assert told.endswith(f"This job ends: {REASON}.\n")
    log = read_from(log_path(job.output_path, 1), 0).decode()
    assert log.startswith("waiting\n")
    assert f"Stopped: {REASON}" in log


def test_a_job_that_nobody_has_noted_to_stop_says_that_it_was_from_outside(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path, fn="wait")
    process = job.start()
    wait_for(process, "waiting")
    assert terminate(process) < 3
    assert process.returncode == EXIT_STOPPED
    process.communicate()
    assert_told(job, "stopped from outside (SIGTERM)")


SWALLOWS = """
import time
def make(config):
    print("waiting", flush=True)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""


def test_a_function_that_swallows_it_is_ended_all_the_same(disk_or_gcs_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_or_gcs_prefix, tmp_path, SWALLOWS)
    process = job.start()
    wait_for(process, "waiting")
    add_stop(job.path, "Dagster run 7", "the run was terminated.")
    assert terminate(process) < 3
    assert process.returncode == -signal.SIGKILL
    process.communicate()
    assert_told(job)


OWN_HANDLER = """
import signal, sys, time
def make(config):
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))
    print("waiting", flush=True)
    time.sleep(60)
"""


def test_a_library_with_a_handler_of_its_own_changes_nothing(disk_prefix: str, tmp_path: Path) -> None:
    """Ray's driver installs one."""
    job = new_job(disk_prefix, tmp_path, OWN_HANDLER)
    process = job.start()
    wait_for(process, "waiting")
    stop(job, process)
    assert_told(job)


CHILD = """
import subprocess
def make(config):
    child = subprocess.Popen(["sleep", "600"])
    print("waiting", flush=True)
    if child.wait() != 0:
        raise RuntimeError("the child has failed")
"""


def test_a_child_that_is_stopped_too_is_not_the_reason(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path, CHILD)
    process = job.start()
    wait_for(process, "waiting")
    add_stop(job.path, "Dagster run 7", "the run was terminated.")
    for each in [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]:
        each.terminate()  # in this order, as Ray does
    process.wait(3)
    process.communicate()
    assert_told(job)


FORKS = """
import multiprocessing, time
context = multiprocessing.get_context("fork")
started = context.Semaphore(0)
def hang(_):
    started.release()
    time.sleep(600)
def make(config):
    pool = context.Pool(2)
    pool.map_async(hang, [1, 2])
    assert started.acquire(timeout=30)
    pool.terminate()
    pool.join()
    return {"documents": 1}
"""


def test_children_that_the_function_ends_itself_do_not_stop_the_job(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path, FORKS)
    code, told = job.run()
    assert code == 0, told
    assert job.outcome()["end"] == "success"


FORKS_AND_TERMINATES = """
import os, signal
def make(config):
    for _ in range(200):
        child = os.fork()
        if child == 0:
            signal.pause()
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    return {"documents": 1}
"""


def test_a_child_that_is_terminated_as_it_starts_ends_and_does_not_stop_the_job(
    disk_prefix: str, tmp_path: Path
) -> None:
    """Until its own handling is reset, it has the job's handler, which would keep it, and the job's pipe."""
    job = new_job(disk_prefix, tmp_path, FORKS_AND_TERMINATES)
    code, told = job.run()
    assert code == 0, told
    assert job.outcome()["end"] == "success"


def test_a_job_that_is_stopped_before_it_has_claimed_leaves_no_trace(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path)
    waits = (
        "from marin_resources.ray_tpu.job import run_step\n"
        "import time\n"
        "def set_up_process(note):\n"
        "    print('waiting', flush=True)\n"
        "    time.sleep(60)\n"
        "run_step.set_up_process = set_up_process\n"
    )
    process = job.start(waits)
    wait_for(process, "waiting")
    assert stop(job, process) == f"This job ends: {REASON}.\n"
    assert read_status(job.output_path) is None
    assert not os.path.exists(log_path(job.output_path, 1))


@pytest.mark.parametrize("point", ["claim", "publish"])
def test_a_stop_at_any_moment_leaves_the_output_whole_or_free(point: str, disk_prefix: str, tmp_path: Path) -> None:
    """During the claim it is delayed until an attempt exists that can clean up."""
    job = new_job(disk_prefix, tmp_path)
    signalled = (
        "import os, signal\n"
        "from marin_resources.storage.output.store import Store\n"
        f"act = Store.{point}\n"
        "def signalled(*args, **kwargs):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return act(*args, **kwargs)\n"
        f"Store.{point} = signalled\n"
    )
    code, _ = job.run(signalled)
    assert code == EXIT_STOPPED
    assert_told(job, "stopped from outside (SIGTERM)")


def test_an_output_that_is_committed_when_the_stop_comes_is_made(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path)
    signalled = (
        "import os, signal\n"
        "from marin_resources.storage import fault_points\n"
        "reach = fault_points.reach\n"
        "def signalled(point):\n"
        "    reach(point)\n"
        "    if point == 'commit published':\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "fault_points.reach = signalled\n"
    )
    code, _ = job.run(signalled)
    assert code == 0
    assert job.outcome()["end"] == "success"
    assert read_status(job.output_path) is Status.SUCCESS
    assert lease.holder_of(job.output_path) is None
