"""The back end of a cluster: a step is a Ray job, which outlives whoever asked for it.

A job is known by its note beside the output (`storage/output/job_notes.py`), so that whoever comes next finds it: a run
that was killed and started again, another run, another deployment. The note is there before the job, so the same
attempt is submitted once. Ray is asked over HTTP, and may be away for minutes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from marin_resources.output import Holder
from marin_resources.ray_tpu.cluster.api.jobs_api import (
    ApiError,
    JobExistsError,
    JobInfo,
    JobsApi,
    JobStatus,
    NoSuchJobError,
    UnreachableError,
    connect,
)
from marin_resources.ray_tpu.cluster.code.code import Code, ship
from marin_resources.ray_tpu.cluster.environments import python_for
from marin_resources.ray_tpu.cluster.errors import ClusterError
from marin_resources.ray_tpu.cluster.handle import (
    JobHandle,
    asks_a_device,
    entry_cpus,
    metadata_of,
    named,
    runtime_env_of,
)
from marin_resources.ray_tpu.cluster.ids import submission_id
from marin_resources.ray_tpu.cluster.job_log import JobLog
from marin_resources.ray_tpu.cluster.outage import Patience
from marin_resources.ray_tpu.cluster.outcome import RUN_WORD, outcome_of
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.cluster.watch import Watch
from marin_resources.ray_tpu.log.spool import upload_spool
from marin_resources.ray_tpu.ray_options import shortcomings
from marin_resources.storage.output import job_notes
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.job_notes import JobNote, JobNoteError, Submitter
from marin_resources.wire.config_json import references_in
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

STOP_TIMEOUT_S = 4.5
"""Ray kills a job that ignores SIGTERM after 3 s."""
STOP_POLL_S = 0.1
SUBMITTER_S = 15.0
"""So long another run may take from its note to its job."""
log = logging.getLogger(__name__)


class Positions(Protocol):
    """Where earlier runs have come to in the log of a job. May block."""

    def of(self, submission_id: str) -> int: ...
    def note(self, submission_id: str, position_bytes: int) -> None: ...
    def forget(self, submission_id: str) -> None: ...


class ClusterBackend:
    """Tasks as jobs of one cluster."""

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        run_id: str | None,
        say: Callable[[str], None] = log.info,
        positions: Positions | None = None,
        is_over: Callable[[str], bool] = lambda run_id: False,
    ) -> None:
        """`is_over` tells of a Dagster run whether it has ended; False if that is not known here."""
        self._settings, self._run_id, self._say = settings, run_id, say
        self._positions, self._is_over = positions, is_over
        self._patience = Patience(settings.address, settings.outage_timeout_s, say)

    def check(self, task: Task) -> None:
        python_for(f"Step {task.output.name!r}", task.extras, self._settings)

    async def attempt_for(self, path: str) -> int:
        note = await asyncio.to_thread(job_notes.newest_note_above_fence, path)
        if note is None:
            return await asyncio.to_thread(job_notes.first_free_attempt, path)
        return note.attempt if note.open and await self._begins(note, path) else note.attempt + 1

    async def attach(self, path: str, holder: Holder) -> JobHandle | None:
        at = job_notes.note_path(path, holder.attempt)
        note = await asyncio.to_thread(job_notes.read_note, at)
        if note is None or not note.open:
            return None
        async with connect(self._settings) as api:
            info = await self._find(api, note)
        if info is None or info.status.is_terminal:
            return None
        handle = await self._joined(note, at, path)
        name = note.task.output.name
        self._say(f"{name}: attached to job {note.submission_id} on {self._settings.address} (attempt {note.attempt})")
        return handle

    async def submit(self, task: Task) -> JobHandle:
        """Note the job, or join the one that is noted. It is submitted when it is waited for."""
        at = job_notes.note_path(task.path, task.attempt)
        standing = await asyncio.to_thread(job_notes.read_note, at)
        if standing is None:
            note = await self._new_note(task)
            standing = await asyncio.to_thread(job_notes.create_note, task.path, note)
            if standing.by == note.by and standing.submitted_at == note.submitted_at:
                return JobHandle(
                    note=standing,
                    path=at,
                    output_path=task.path,
                    address=self._settings.address,
                    submits=True,
                    owned=True,
                    python=python_for(f"Step {task.output.name!r}", task.extras, self._settings),
                )
        return await self._joined(standing, at, task.path)

    async def wait(self, handle: JobHandle, on_log: Callable[[str], None]) -> Outcome:
        async with connect(self._settings) as api:
            if handle.submits and (refused := await self._post(api, handle)) is not None:
                return refused
            job_log = await self._job_log(handle, on_log)
            watch = Watch(
                api=api,
                patience=self._patience,
                handle=handle,
                job_log=job_log,
                start_timeout_s=self._settings.start_timeout_s,
                passed_on=lambda: self._note_position(handle, job_log),
            )
            ended = await watch.end()
            await asyncio.to_thread(upload_spool, job_log.path)  # of a worker on this machine that was killed
            await asyncio.to_thread(job_log.finish)
            if self._positions is not None:
                await asyncio.to_thread(self._positions.forget, handle.job)
            return ended if isinstance(ended, Outcome) else await self._outcome(handle, ended)

    async def leave(self, handle: JobHandle, *, wanted: bool) -> str | None:
        if not wanted and handle.owned:
            return None
        why = "" if handle.owned else f", as {named(handle.note.owner)} waits for it"
        return (
            f"its job {handle.job} goes on on {handle.address}{why}. Materialize the step again to attach to it; "
            f"`marin cluster logs {handle.job}` shows what it prints, `marin cluster stop-job {handle.job}` ends it."
        )

    async def stop(self, handle: JobHandle, reason: str) -> None:
        by = f"{RUN_WORD}{self._run_id}"
        try:
            await asyncio.to_thread(job_notes.add_stop, handle.path, by, reason)  # it exits if it begins after this
        except (OSError, JobNoteError) as error:  # a job that has begun is stopped all the same
            self._say(f"that job {handle.job} is to stop could not be noted ({error})")
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S), connect(self._settings) as api:
                await stop_job(api, handle.job)
        except NoSuchJobError:
            return  # it was noted and not submitted yet
        except (TimeoutError, UnreachableError, ClusterError) as error:
            self._say(
                f"whether job {handle.job} has stopped is not known ({str(error) or 'it takes long'}); "
                f"`marin cluster stop-job {handle.job}` tells it again"
            )

    def shutdown(self) -> None:
        """Nothing ends with this process."""

    async def _new_note(self, task: Task) -> JobNote:
        references = {task.fn, *references_in(task.config)}
        async with connect(self._settings) as api:
            version = await self._patience.ask(api.version)
            code = await self._patience.ask(lambda: ship(self._settings, api, references))
        by = await asyncio.to_thread(Submitter.here, self._run_id)
        return JobNote(
            attempt=task.attempt,
            submission_id=submission_id(task),
            dashboard=self._settings.address,
            session=version.session,
            task=task,
            code=code.to_json(),
            submitted_at=datetime.now(UTC).isoformat(),
            by=by,
            owner=by,
        )

    async def _joined(self, note: JobNote, at: str, output_path: str) -> JobHandle:
        """A handle of another run's job. It is this run's from now on, if nobody else waits for it any more."""
        owned = await asyncio.to_thread(self._is_gone, note.owner)
        if owned:
            note = await asyncio.to_thread(job_notes.take_over, at, Submitter.here(self._run_id))
        return JobHandle(
            note=note, path=at, output_path=output_path, address=self._settings.address, submits=False, owned=owned
        )

    def _is_gone(self, owner: Submitter) -> bool:
        return owner.is_gone() or (owner.run_id is not None and self._is_over(owner.run_id))

    async def _begins(self, note: JobNote, output_path: str) -> bool:
        """Whether the job of a note that nobody has claimed with will begin, or may be going on; notes it if not."""
        until_s = time.monotonic() + SUBMITTER_S
        async with connect(self._settings) as api:
            while True:
                if (await self._patience.ask(api.version)).session != note.session:
                    return False  # of another cluster, or of a head that is gone
                info = await self._find(api, note)
                if info is not None:
                    why = f"ended as {info.status} before it claimed the output"
                    begins = not info.status.is_terminal
                    break
                if self._is_gone(note.by) or time.monotonic() > until_s:
                    why, begins = "never submitted", False
                    break
                await asyncio.sleep(1.0)
        if not begins:
            at = job_notes.note_path(output_path, note.attempt)
            await asyncio.to_thread(job_notes.add_ended, at, why)
        return begins

    async def _find(self, api: JobsApi, note: JobNote) -> JobInfo | None:
        """The job of a note, None if the cluster has none or is another head's by now."""
        if (await self._patience.ask(api.version)).session != note.session:
            return None
        try:
            return await self._patience.ask(lambda: api.info(note.submission_id))
        except NoSuchJobError:
            return None

    async def _post(self, api: JobsApi, handle: JobHandle) -> Outcome | None:
        """Submit the job; the outcome if the cluster does not take it."""
        task, code = handle.note.task, Code.from_json(handle.note.code)
        call = lambda: api.submit(  # noqa: E731
            submission_id=handle.job,
            entrypoint=code.command(handle.python, "marin_resources.ray_tpu.job", handle.path),
            runtime_env=runtime_env_of(code),
            metadata=metadata_of(task, handle),
            num_cpus=entry_cpus(task),
            memory_bytes=None if asks_a_device(task) else task.resources.memory_bytes,
        )
        try:
            await self._patience.ask(call)
        except JobExistsError:
            return None  # the answer to the first try was lost
        except ApiError as error:
            await asyncio.to_thread(job_notes.add_ended, handle.path, str(error))
            return Outcome(end=End.FAILED, error=f"the cluster {handle.address} did not take its job: {error}")
        if short := shortcomings(task.resources, await self._nodes(api)):
            self._say(
                f"{task.output.name}: no node of {handle.address} has what it asks for now ({short}); one is waited "
                f"for, {self._settings.start_timeout_s:.0f} s at most"
            )
        return None

    async def _nodes(self, api: JobsApi) -> list[dict[str, float]]:
        return [dict(node) for node in await self._patience.ask(api.node_resources)]

    async def _job_log(self, handle: JobHandle, on_log: Callable[[str], None]) -> JobLog:
        start = await asyncio.to_thread(self._positions.of, handle.job) if self._positions else 0
        attempt = handle.note.attempt
        return JobLog(log_path(handle.output_path, attempt), attempt, on_log, start_bytes=start)

    async def _outcome(self, handle: JobHandle, info: JobInfo) -> Outcome:
        note = await asyncio.to_thread(job_notes.read_note, handle.path) or handle.note
        outcome = await asyncio.to_thread(outcome_of, note, info, handle.output_path)
        if note.outcome is None:
            await asyncio.to_thread(job_notes.add_ended, handle.path, outcome.error)
        return outcome

    def _note_position(self, handle: JobHandle, job_log: JobLog) -> None:
        if self._positions is not None:
            self._positions.note(handle.job, job_log.position_bytes)


async def stop_job(api: JobsApi, job: str) -> JobInfo:
    """Tell Ray to stop a job; returns it when it has ended, or is pending, which Ray cannot end."""
    await api.stop(job)
    while True:
        info = await api.info(job)
        if info.status.is_terminal or info.status is JobStatus.PENDING:
            return info
        await asyncio.sleep(STOP_POLL_S)
