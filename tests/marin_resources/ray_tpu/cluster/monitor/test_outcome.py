"""The outcome of a job that has reported none, from what Ray and the note say."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from job_process import IN_IMAGE, Job, new_job

from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus
from marin_resources.ray_tpu.cluster.monitor.outcome import NO_CODE, QUEUED_TOO_LONG, outcome_of
from marin_resources.storage.output.notes.job_notes import add_ended
from marin_resources.storage.output.notes.progress import Progress, write_progress
from marin_resources.wire.outcome import End, Outcome

SHIPPED = {**IN_IMAGE, "mode": "ship"}


def info(status: JobStatus = JobStatus.FAILED, **fields: Any) -> JobInfo:
    job = JobInfo(
        submission_id="the-job",
        status=status,
        message="",
        error_type=None,
        exit_code=None,
        submitted_at_s=None,
        ended_at_s=None,
        metadata={},
        entrypoint="x",
        node_id=None,
    )
    return dataclasses.replace(job, **fields)


@pytest.fixture
def job(disk_prefix: str, tmp_path: Path) -> Job:
    return new_job(disk_prefix, tmp_path / "code", code=SHIPPED)


def ended(job: Job, how: JobInfo) -> Outcome:
    return outcome_of(job.note(), how, job.output_path)


def test_a_job_that_found_itself_given_up_has_not_begun(job: Job) -> None:
    add_ended(job.path, "was never submitted")
    outcome = ended(job, info(JobStatus.SUCCEEDED))
    assert outcome.end is End.NOT_BEGUN
    assert outcome.error.endswith("began too late and did nothing: was never submitted")


def test_a_job_that_ray_has_given_up_has_not_begun(job: Job) -> None:
    outcome = ended(job, info(error_type=QUEUED_TOO_LONG, message="Job supervisor actor failed to start"))
    assert outcome.end is End.NOT_BEGUN


def test_a_job_whose_code_is_gone_from_its_node_is_lost_as_long_as_its_step_has_not_begun(job: Job) -> None:
    how = info(exit_code=1, message=f"Job entrypoint command failed\n{NO_CODE}.ray_tpu.job'")
    assert ended(job, how).end is End.LOST
    in_image = dataclasses.replace(job.note(), code=IN_IMAGE)
    assert outcome_of(in_image, how, job.output_path).end is End.FAILED


def test_a_job_that_ends_before_its_step_fails_and_afterwards_is_lost(job: Job) -> None:
    how = info(exit_code=1, message="Job entrypoint command failed\nImportError: no such thing")
    outcome = ended(job, how)
    assert (outcome.end, outcome.traceback) == (End.FAILED, "ImportError: no such thing")
    claimed = job.store.claim(job.note().task.output, attempt=1, resumable=False, run_id="run-1", stale_lease=None)
    assert ended(job, how).end is End.LOST
    claimed.lease.release()


@pytest.mark.parametrize(
    ("code", "crash"),
    [
        (-11, "signal 11 (SIGSEGV)"),
        (134, "signal 6 (SIGABRT)"),
        (9, "exit code 9"),
        (1, ""),  # the store did not answer
        (-9, ""),  # no memory was left
        (143, ""),  # it was stopped
    ],
)
def test_a_job_that_died_of_its_own_fault_after_its_step_began_has_crashed(job: Job, code: int, crash: str) -> None:
    assert ended(job, info(exit_code=code)).crash == "", "before the step it is not the step's"
    claimed = job.store.claim(job.note().task.output, attempt=1, resumable=False, run_id="run-1", stale_lease=None)
    outcome = ended(job, info(exit_code=code))
    assert (outcome.end, outcome.crash) == (End.LOST, crash and f"its process died by {crash}")
    if crash:
        write_progress(job.output_path, 1, Progress(step=7, at="2026-01-01T00:00:00+00:00"))
        assert ended(job, info(exit_code=code)).crash == f"its process died by {crash}, after step 7 or a few more"
    claimed.lease.release()


@pytest.mark.parametrize("code", [-9, 137])
def test_a_job_that_is_killed_is_lost(job: Job, code: int) -> None:
    outcome = ended(job, info(exit_code=code))
    assert (outcome.end, outcome.error) == (End.LOST, "the process of its cluster job the-job was killed by signal 9")
