"""The back end of a cluster: a step is a Ray job, which outlives the run that submitted it.

A note beside the output (`storage/output/job_notes.py`) identifies the job. So a later run finds it: the same run
after a crash, another run, another deployment. The note is created before the job, so one attempt is submitted once.
Ray is reached over HTTP, and may be down for minutes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.backend import SubmissionLeftError
from marin_resources.ray_tpu.cluster.api.jobs_api import JobInfo, JobsApi, JobStatus, connect
from marin_resources.ray_tpu.cluster.batch_jobs.batch_jobs import BatchJobs
from marin_resources.ray_tpu.cluster.batch_jobs.batch_step import BatchStep
from marin_resources.ray_tpu.cluster.batch_jobs.queue import Queue
from marin_resources.ray_tpu.cluster.batch_jobs.task_queue import TaskQueueClosedError
from marin_resources.ray_tpu.cluster.code.code import Code, code_of, ship
from marin_resources.ray_tpu.cluster.code.freeze import freeze_code
from marin_resources.ray_tpu.cluster.code.python import python_for
from marin_resources.ray_tpu.cluster.errors import (
    ClusterError,
    NoSuchJobError,
    UnreachableError,
)
from marin_resources.ray_tpu.cluster.handle import (
    JobHandle,
    entrypoint_resources,
    is_small,
    needs_device,
    submission_id,
)
from marin_resources.ray_tpu.cluster.missing_requirements import known_missing, missing_on
from marin_resources.ray_tpu.cluster.monitor.job_log import JobLog, Positions, Shown
from marin_resources.ray_tpu.cluster.monitor.job_monitor import JobMonitor
from marin_resources.ray_tpu.cluster.monitor.nodes import Nodes
from marin_resources.ray_tpu.cluster.monitor.outcome import STOPPED_BY_RUN, outcome_of
from marin_resources.ray_tpu.cluster.monitor.start_watch import Reports, StartWatch, Wait
from marin_resources.ray_tpu.cluster.retry import RetryWhileUnreachable
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.cluster.submission import submit_note
from marin_resources.ray_tpu.requirements import MissingByStep, Requirements
from marin_resources.ray_tpu.site import PlacementRequest, Site
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.notes import job_notes
from marin_resources.storage.output.notes.job_notes import BatchJob, JobNote, Submitter
from marin_resources.types.output import Holder
from marin_resources.types.versioned_json import ControlFileError
from marin_resources.wire.config_json import references_in
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

STOP_TIMEOUT_S = 4.5
"""Ray kills a job that ignores SIGTERM after 3 s."""
STOP_POLL_S = 0.1
SUBMIT_TIMEOUT_S = 15.0
"""Time limit for another run from its note to its job. After it, the job counts as never submitted."""
log = logging.getLogger(__name__)


class ClusterBackend:
    """Tasks as jobs of one cluster."""

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        run_id: str | None,
        report: Callable[[str], None] = log.info,
        positions: Positions | None = None,
        is_over: Callable[[str], bool] = lambda run_id: False,
    ) -> None:
        """`is_over` returns whether a Dagster run has ended; False if that is unknown here."""
        self._settings, self._run_id, self._report = settings, run_id, report
        self._positions, self._is_over = positions, is_over
        self._retry = RetryWhileUnreachable(settings.address, settings.outage_timeout_s, report)
        self._batch_jobs = BatchJobs(settings=settings, retry=self._retry, run_id=run_id)
        self._queue, self._nodes, self._reports = Queue(self._list_jobs), Nodes(settings, self._retry), Reports()
        self._waits: dict[str, Wait] = {}
        """By output path: the waits of jobs for their start."""

    def satisfies(self, required: Requirements) -> bool:
        return not known_missing(required, self._settings) and required.resources == Resources()

    def missing_by_step(self, required: Sequence[Requirements]) -> MissingByStep:
        with ThreadPoolExecutor(1) as pool:  # in a loop of its own, whether or not the caller has one
            return pool.submit(asyncio.run, missing_on(self._settings, required, self._report)).result()

    def check(self, task: Task) -> None:
        self._python_for(task)

    @property
    def prefixes(self) -> Sequence[str]:
        return ()

    async def site(self, needs: Callable[[], PlacementRequest], path: str) -> Site | None:
        return None

    async def attempt_for(self, path: str) -> int:
        await asyncio.to_thread(freeze_code, self._settings)  # before the facts of the run's first task are read
        note = await asyncio.to_thread(job_notes.newest_note_above_fence, path)
        if note is None:
            return await asyncio.to_thread(job_notes.first_free_attempt, path)
        return note.attempt if note.open and await self._may_begin(note, path) else note.attempt + 1

    async def attach(self, path: str, holder: Holder) -> JobHandle | None:
        note_path = job_notes.note_path(path, holder.attempt)
        note = await asyncio.to_thread(job_notes.read_note, note_path)
        if note is None or not note.open:
            return None
        async with connect(self._settings) as api:
            info = await self._find_job(api, note)
        if info is None or info.status.is_terminal:
            return None
        handle = await self.join(note, note_path, path)
        where = f"cluster job {note.submission_id} on {self._settings.address} (attempt {note.attempt})"
        self._report(f"{note.task.output.label}: attached to {where}")
        return handle

    async def submit(
        self,
        task: Task,
        on_job: Callable[[str], None] = lambda job: None,
        should_detach: Callable[[], bool] = lambda: False,
    ) -> JobHandle:
        """Create the job's note and submit the job; or join the job of an existing note.

        `on_job` is called with the job's id between the two. If the cluster rejects the job, `wait` returns that
        outcome.
        """
        note_path = job_notes.note_path(task.path, task.attempt)
        note = await asyncio.to_thread(job_notes.read_note, note_path)
        if note is None:
            new = await (self._new_batch_note(task) if await self._is_batched(task) else self._new_note(task))
            note = await asyncio.to_thread(job_notes.create_note, task.path, new)
            if note.by == new.by and note.submitted_at == new.submitted_at:
                handle = self._own_handle(note, note_path, task)
                try:
                    await (self._post_step(handle) if note.batch_job else self._submit_job(handle, on_job))
                except asyncio.CancelledError:
                    if should_detach():
                        raise SubmissionLeftError(handle.describe_detached()) from None
                    await self._stop_after_cancellation(handle)
                    raise
                return handle
        return await self.join(note, note_path, task.path)

    async def wait(self, handle: JobHandle, on_log: Callable[[str], None]) -> Outcome:
        if handle.refusal is not None:
            return handle.refusal
        job_log = await self._job_log(handle, on_log)
        if handle.output_path not in self._waits:
            has_run = await asyncio.to_thread(job_notes.was_lost_before, handle.note)
            self._waits[handle.output_path] = Wait(has_run=has_run)
        ended = await (self._wait_for_job if handle.note.batch_job is None else self._wait_for_step)(handle, job_log)
        if self._positions is not None:
            await asyncio.to_thread(self._positions.forget, handle.id)
        outcome = ended if isinstance(ended, Outcome) else await self._outcome(handle, ended)
        if outcome.end is not End.NOT_BEGUN:
            self._waits.pop(handle.output_path, None)
        return outcome

    async def _wait_for_job(self, handle: JobHandle, job_log: JobLog) -> JobInfo | Outcome:
        task = handle.note.task
        async with connect(self._settings) as api:
            monitor = JobMonitor(
                api=api,
                retry=self._retry,
                handle=handle,
                job_log=job_log,
                start_watch=self._start_watch(handle, entrypoint_resources(task)),
                device_watch=self._start_watch(handle, task.resources) if needs_device(task) else None,
                on_progress=lambda: self._note_position(handle, job_log),
            )
            return await monitor.wait()

    async def _wait_for_step(self, handle: JobHandle, job_log: JobLog) -> Outcome:
        assert handle.note.batch_job is not None
        step = BatchStep(
            handle=handle,
            batch_job=handle.note.batch_job,
            batch_jobs=self._batch_jobs,
            job_log=job_log,
            start_watch=self._start_watch(handle, handle.note.task.resources),
            on_progress=lambda: self._note_position(handle, job_log),
        )
        return await step.wait()

    async def detach(self, handle: JobHandle, *, force: bool) -> str | None:
        if not force and handle.owned:
            return None
        return handle.describe_detached()

    async def stop(self, handle: JobHandle, reason: str) -> None:
        by = f"{STOPPED_BY_RUN}{self._run_id}"
        try:
            await asyncio.to_thread(job_notes.add_stop, handle.note_path, by, reason)  # a pending job exits on this
        except (OSError, ControlFileError) as error:  # a running job is stopped all the same
            self._report(f"the stop of job {handle.id} could not be noted ({error})")
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S), connect(self._settings) as api:
                batch_job = handle.note.batch_job
                await (self._batch_jobs.stop(batch_job, handle.note_path) if batch_job else stop_job(api, handle.job))
        except NoSuchJobError:
            return  # noted, and not submitted yet
        except (TimeoutError, UnreachableError, ClusterError) as error:
            self._report(
                f"whether job {handle.id} has stopped is unknown ({str(error) or 'it takes long'}); "
                f"`marin cluster stop-job {handle.id}` stops it again"
            )

    def shutdown(self) -> None:
        """Jobs outlive this process. Its batch jobs end after the last of their steps."""
        self._batch_jobs.end()

    async def _is_batched(self, task: Task) -> bool:
        """Whether a batch job runs the step: a small one, unless it is the first and comes alone."""
        if not is_small(task):
            return False
        return task.own_job is False or not await self._batch_jobs.is_first_alone(task.prefix, self._python_for(task))

    def _python_for(self, task: Task) -> str:
        return python_for(f"Step {task.output.label!r}", task.extras, self._settings)

    async def _new_note(self, task: Task) -> JobNote:
        references = {task.fn, *references_in(task.config)}
        async with connect(self._settings) as api:
            version = await self._retry.call(api.version)
            code = await self._retry.call(lambda: ship(self._settings, api, references, task.prefix))
        return await asyncio.to_thread(self._note, task, version.session, code, None)

    async def _new_batch_note(self, task: Task) -> JobNote:
        references = {task.fn, *references_in(task.config)}
        started = await self._batch_jobs.started(
            task.prefix, self._python_for(task), lambda api: ship(self._settings, api, references, task.prefix)
        )
        code = await asyncio.to_thread(code_of, self._settings, references)
        return await asyncio.to_thread(self._note, task, started.session, code, started.batch_job)

    def _note(self, task: Task, session: str, code: Code, batch_job: BatchJob | None) -> JobNote:
        by = Submitter.here(self._run_id)
        return JobNote(
            attempt=task.attempt,
            submission_id=submission_id(task),
            dashboard=self._settings.address,
            session=session,
            task=task,
            code=code.to_dict(),
            submitted_at=datetime.now(UTC).isoformat(),
            by=by,
            owner=by,
            batch_job=batch_job,
        )

    def _own_handle(self, note: JobNote, note_path: str, task: Task) -> JobHandle:
        return JobHandle(
            note=note,
            note_path=note_path,
            output_path=task.path,
            address=self._settings.address,
            submitted_here=True,
            owned=True,
            python=self._python_for(task),
        )

    async def join(self, note: JobNote, note_path: str, output_path: str) -> JobHandle:
        """Return a handle of another run's job. This run becomes its owner if the current owner is gone."""
        owned = await asyncio.to_thread(self._is_gone, note.owner)
        if owned:
            note = await asyncio.to_thread(job_notes.take_over, note_path, Submitter.here(self._run_id))
        if note.batch_job is not None:  # again, in case its submitter has died before it could
            with suppress(TaskQueueClosedError):
                await self._batch_jobs.outbox(note.batch_job).run(note_path)
        return JobHandle(
            note=note,
            note_path=note_path,
            output_path=output_path,
            address=self._settings.address,
            submitted_here=False,
            owned=owned,
        )

    def _is_gone(self, owner: Submitter) -> bool:
        return owner.is_gone() or (owner.run_id is not None and self._is_over(owner.run_id))

    async def _may_begin(self, note: JobNote, output_path: str) -> bool:
        """Whether the job of an unclaimed note may still begin, or run. Close the note if not."""
        until_s = time.monotonic() + SUBMIT_TIMEOUT_S
        async with connect(self._settings) as api:
            while True:
                if (await self._retry.call(api.version)).session != note.session:
                    return False  # the job was on another cluster, or on a head that is gone
                info = await self._find_job(api, note)
                if info is not None:
                    ended = f"ended as {info.status} before it claimed the output" if info.status.is_terminal else None
                    break
                if self._is_gone(note.by) or time.monotonic() > until_s:
                    ended = "never submitted"
                    break
                await asyncio.sleep(1.0)
        if ended is not None:
            note_path = job_notes.note_path(output_path, note.attempt)
            await asyncio.to_thread(job_notes.add_ended, note_path, ended)
        return ended is None

    async def _find_job(self, api: JobsApi, note: JobNote) -> JobInfo | None:
        """The job of a note; None if the cluster does not have it, or has another head by now."""
        if (await self._retry.call(api.version)).session != note.session:
            return None
        try:
            return await self._retry.call(lambda: api.info(note.job))
        except NoSuchJobError:
            return None

    async def _post_step(self, handle: JobHandle) -> None:
        """Give a step to its batch job. A batch job that has closed its task queue meanwhile closes the note."""
        batch_job = handle.note.batch_job
        assert batch_job is not None
        try:
            await self._batch_jobs.outbox(batch_job).run(handle.note_path)
        except TaskQueueClosedError as error:
            self._batch_jobs.forget(batch_job)
            await asyncio.to_thread(job_notes.add_ended, handle.note_path, str(error))
            handle.refusal = Outcome(end=End.NOT_BEGUN, error=f"job {handle.id} has not begun: {error}")

    async def _stop_after_cancellation(self, handle: JobHandle) -> None:
        """Stop a job whose submission was cancelled: it may have arrived, and the caller has no handle to stop it."""
        import anyio

        with anyio.CancelScope(shield=True):
            await self.stop(handle, "the run was stopped while it submitted the job")

    async def _submit_job(self, handle: JobHandle, on_job: Callable[[str], None]) -> None:
        await asyncio.to_thread(on_job, handle.job)
        async with connect(self._settings) as api:
            handle.refusal = await submit_note(
                handle.note, handle.note_path, handle.python, api=api, settings=self._settings, retry=self._retry
            )

    def _start_watch(self, handle: JobHandle, resources: Resources) -> StartWatch:
        task = handle.note.task
        return StartWatch(
            shortcomings=self._nodes.shortcomings,
            queue=self._queue.jobs,
            job=handle.id,
            resources=resources,
            start_timeout_s=self._settings.start_timeout_s,
            report=lambda phrase: self._report(f"{task.output.label}: it {phrase}"),
            reports=self._reports,
            wait=self._waits[handle.output_path],
        )

    async def _list_jobs(self) -> list[JobInfo]:
        async with connect(self._settings) as api:
            return await self._retry.call(api.list)

    async def _job_log(self, handle: JobHandle, on_log: Callable[[str], None]) -> JobLog:
        positions, step, attempt = self._positions, handle.note.task.output.label, handle.note.attempt
        shown = await asyncio.to_thread(positions.of, handle.id, step) if positions else Shown()

        def show(line: str) -> None:
            if positions is None:
                on_log(line)
            else:
                positions.show(handle.id, step, shown, lambda: on_log(line))

        path = log_path(handle.output_path, attempt)
        if shown != Shown():
            self._report(f"{step}: resuming the log; earlier lines are in {path}")
        return JobLog(path, attempt, show, shown=shown, has_set_up=handle.note.batch_job is None)

    async def _outcome(self, handle: JobHandle, info: JobInfo) -> Outcome:
        note = await asyncio.to_thread(job_notes.read_note, handle.note_path) or handle.note
        outcome = await asyncio.to_thread(outcome_of, note, info, handle.output_path)
        if note.outcome is None:
            await asyncio.to_thread(job_notes.add_ended, handle.note_path, outcome.error)
        return outcome

    def _note_position(self, handle: JobHandle, job_log: JobLog) -> None:
        if self._positions is not None and job_log.all_is_shown:
            self._positions.note(handle.id, handle.note.task.output.label, job_log.position_bytes)


async def stop_job(api: JobsApi, job: str) -> JobInfo:
    """Request the stop of a job; return it when it has ended, or is pending, which Ray cannot stop."""
    await api.stop(job)
    while True:
        info = await api.info(job)
        if info.status.is_terminal or info.status is JobStatus.PENDING:
            return info
        await asyncio.sleep(STOP_POLL_S)
