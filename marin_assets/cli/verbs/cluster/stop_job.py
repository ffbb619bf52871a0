"""Stop a job, and report to the runs that wait for it who stopped it and why.

The stop is written into the job's note beside its output first. Ray cannot stop a job that waits for a node: because
of the note, such a job exits as soon as it begins.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from marin_assets.cli.verbs.cluster.support.batch_steps import find_step, note_stops, stop_step
from marin_assets.cli.verbs.cluster.support.connection import (
    add_cluster,
    call_cluster,
    require_job,
    settings_from,
    user_at_host,
)
from marin_assets.run.output import print_line, print_stderr
from marin_resources.types.versioned_json import ControlFileError

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi
    from marin_resources.ray_tpu.cluster.batch_jobs.steps import BatchStep

STOP_TIMEOUT_S = 10.0
PENDING_TIMEOUT_S = 2.0
"""A pending job may be about to begin."""
POLL_S = 0.2


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="its id, as `marin cluster jobs` lists it")
    add_cluster(parser)
    parser.add_argument(
        "--reason", default="no reason given", metavar="TEXT", help="shown by the runs that wait for it"
    )


def run(options: argparse.Namespace) -> int:
    async def stop(api: JobsApi) -> int:
        if (step := await find_step(api, options.job)) is not None:
            return _print_step(step, await stop_step(step, user_at_host(), options.reason))
        await require_job(api, options.job)
        info = await api.info(options.job)
        if info.status.is_terminal:
            print_line(f"Job {options.job} had already ended: {info.status}.")
            return 0
        await note_stops(info, user_at_host(), options.reason)
        noted = await asyncio.to_thread(_note_stop, info.metadata, options.reason)
        await api.stop(options.job)
        return _print_result(await _ended(api, options.job), noted)

    try:
        return call_cluster(settings_from(options), stop)
    except ControlFileError as error:
        print_stderr(f"{error} The job was not stopped.")
        return 1


def _note_stop(metadata: Mapping[str, str], reason: str) -> bool:
    """Write the stop into the job's note. Return whether the job has a note here."""
    from marin_resources.storage.output.notes.job_notes import add_stop, note_path, read_note

    if "marin/output" not in metadata or "marin/attempt" not in metadata or "marin/carrier" in metadata:
        return False
    path = note_path(metadata["marin/output"], int(metadata["marin/attempt"]))
    if read_note(path) is None:
        print_stderr(
            f"Its note {path!r} cannot be found from here, so the runs that wait for it cannot show who stopped it."
        )
        return False
    add_stop(path, user_at_host(), reason)
    return True


async def _ended(api: JobsApi, job: str) -> JobInfo:
    """Wait for the end of the job; return it as it is after the time limit."""
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus

    began_s = time.monotonic()
    while True:
        info = await api.info(job)
        timeout_s = PENDING_TIMEOUT_S if info.status is JobStatus.PENDING else STOP_TIMEOUT_S
        if info.status.is_terminal or time.monotonic() - began_s > timeout_s:
            return info
        await asyncio.sleep(POLL_S)


def _print_step(step: BatchStep, ended: bool) -> int:
    if ended:
        print_line(f"Job {step.note.submission_id} has ended: STOPPED.")
        return 0
    print_stderr(f"The stop of job {step.note.submission_id} was requested, and it still runs. Check again later.")
    return 1


def _print_result(info: JobInfo, noted: bool) -> int:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus

    if info.status.is_terminal:
        print_line(f"Job {info.submission_id} has ended: {info.status}.")
        return 0
    if info.status is JobStatus.PENDING and noted:
        print_line(
            f"Job {info.submission_id} waits for a node, where Ray cannot stop it; it will exit as soon as it begins."
        )
        return 0
    if info.status is JobStatus.PENDING:
        print_stderr(
            f"Job {info.submission_id} waits for a node, where Ray cannot stop it. Stop it again when it runs."
        )
    else:
        print_stderr(
            f"The stop of job {info.submission_id} was requested, and it still runs after "
            f"{STOP_TIMEOUT_S:.0f} s. Check again later."
        )
    return 1
