"""End a job, and tell the runs that wait for it who did, and why.

The stop is written into the job's note beside its output first. So a job that still waits for its node, which Ray
cannot end, leaves again when it begins.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from marin_assets.cli.cluster.connection import add_cluster, ask_cluster, refuse_unknown, settings_from, who
from marin_assets.cli.output import tell, warn

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi

STOP_TIMEOUT_S = 10.0
PENDING_S = 2.0
"""It may be about to begin."""
POLL_S = 0.2


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="its id, as `marin cluster jobs` lists it")
    add_cluster(parser)
    parser.add_argument(
        "--reason", default="no reason given", metavar="TEXT", help="what the runs that wait for it are told"
    )


def run(options: argparse.Namespace) -> int:
    from marin_resources.storage.output.job_notes import JobNoteError

    async def stop(api: JobsApi) -> int:
        await refuse_unknown(api, options.job)
        info = await api.info(options.job)
        if info.status.is_terminal:
            tell(f"Job {options.job} has ended before: {info.status}.")
            return 0
        noted = await asyncio.to_thread(_note_stop, info.metadata, options.reason)
        await api.stop(options.job)
        return _tell(await _ended(api, options.job), noted)

    try:
        return ask_cluster(settings_from(options), stop)
    except JobNoteError as error:
        warn(f"{error} The job was not stopped.")
        return 1


def _note_stop(metadata: Mapping[str, str], reason: str) -> bool:
    """Whether there is a note, which says so now."""
    from marin_resources.storage.output.job_notes import add_stop, note_path, read_note

    if "marin/output" not in metadata or "marin/attempt" not in metadata:
        return False
    path = note_path(metadata["marin/output"], int(metadata["marin/attempt"]))
    if read_note(path) is None:
        warn(
            f"Its note {path!r} is not to be found from here, so the runs that wait for it are not told who stopped it."
        )
        return False
    add_stop(path, who(), reason)
    return True


async def _ended(api: JobsApi, job: str) -> JobInfo:
    """The job when it has ended, or as it is when that takes too long."""
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus

    began_s = time.monotonic()
    while True:
        info = await api.info(job)
        longest_s = PENDING_S if info.status is JobStatus.PENDING else STOP_TIMEOUT_S
        if info.status.is_terminal or time.monotonic() - began_s > longest_s:
            return info
        await asyncio.sleep(POLL_S)


def _tell(info: JobInfo, noted: bool) -> int:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus

    if info.status.is_terminal:
        tell(f"Job {info.submission_id} has ended: {info.status}.")
        return 0
    if info.status is JobStatus.PENDING and noted:
        tell(f"Job {info.submission_id} waits for a node, where Ray cannot end it; it will leave as soon as it begins.")
        return 0
    if info.status is JobStatus.PENDING:
        warn(f"Job {info.submission_id} waits for a node, where Ray cannot end it. Stop it again when it runs.")
    else:
        warn(
            f"Job {info.submission_id} was told to stop, and still runs after {STOP_TIMEOUT_S:.0f} s. Look again later."
        )
    return 1
