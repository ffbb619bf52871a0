"""A batch job whose list of steps cannot be read takes no other batch job's steps away."""

from __future__ import annotations

import asyncio

import pytest

from marin_resources.ray_tpu.cluster.api.job_info import JobInfo, JobStatus
from marin_resources.ray_tpu.cluster.batch_jobs.steps import BATCH_JOB, NAME, steps_of
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join


@pytest.mark.parametrize("data", [b"", b"[]", b'{"format_version": 1, "notes": 3}', b'{"format_version": 99}'])
def test_a_damaged_list_is_empty(disk_prefix: str, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    write_bytes(join(disk_prefix, NAME), data)
    job = JobInfo(
        submission_id="small-steps-1",
        status=JobStatus.RUNNING,
        message="",
        error_type=None,
        exit_code=None,
        submitted_at_s=None,
        ended_at_s=None,
        metadata={BATCH_JOB: disk_prefix},
        entrypoint="x",
        node_id=None,
    )
    assert asyncio.run(steps_of([job])) == []
    assert "cannot be listed" in caplog.text
