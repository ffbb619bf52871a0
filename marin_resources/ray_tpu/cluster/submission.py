"""Submit the job of a note. The note exists already, so one attempt is submitted once."""

from __future__ import annotations

import asyncio

from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
from marin_resources.ray_tpu.cluster.code.code import Code
from marin_resources.ray_tpu.cluster.errors import ApiError, JobExistsError
from marin_resources.ray_tpu.cluster.handle import entrypoint_resources, metadata_of, runtime_env_of
from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.storage.output.notes import job_notes
from marin_resources.storage.output.notes.job_notes import JobNote
from marin_resources.wire.outcome import End, Outcome


async def submit_note(
    note: JobNote,
    note_path: str,
    python: str,
    *,
    api: JobsApi,
    settings: ClusterSettings,
    retry: RetryWhileUnreachable,
) -> Outcome | None:
    """Submit the job of a note, with this Python of the node. Return the outcome if the cluster rejects the job; the
    note has the reason then."""
    code, requested = Code.from_dict(note.code), entrypoint_resources(note.task)
    request = lambda: api.submit(  # noqa: E731
        submission_id=note.submission_id,
        entrypoint=code.command(python, "marin_resources.ray_tpu.job", note_path),
        runtime_env=runtime_env_of(code, settings),
        metadata=metadata_of(note.task, note),
        num_cpus=requested.cpus,
        memory_bytes=requested.memory_bytes,
    )
    try:
        await retry.call(request)
    except JobExistsError:
        return None  # the response to an earlier try was lost
    except ApiError as error:
        await asyncio.to_thread(job_notes.add_ended, note_path, str(error))
        return Outcome(end=End.FAILED, error=f"the cluster {settings.address} did not take its job: {error}")
    return None
