"""The work of a worker: claim the output, call the step's function, publish. Steps 5 to 7 of a materialization.

In:  a task and its placement: a process of the run's own Ray, or a job's process.   Out: an outcome.
Raises only what ends the process (Stopped, KeyboardInterrupt), after recording it beside the output.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Protocol

from marin_resources.host.process import cpu_seconds
from marin_resources.ray_tpu.crash_note import crash_name, crash_noted
from marin_resources.ray_tpu.environment.packages import PackagesError, install_packages
from marin_resources.ray_tpu.log.attempt_log import redirect_output
from marin_resources.ray_tpu.log.redact import Redactor, secrets_of
from marin_resources.ray_tpu.log.spool import upload_spool
from marin_resources.ray_tpu.shards.cpu_elsewhere import cpu_elsewhere_s
from marin_resources.ray_tpu.shards.job_allocation import JobAllocation, ShardRequirements, reserve
from marin_resources.ray_tpu.worker import stop_signal
from marin_resources.ray_tpu.worker.deadline import deadline
from marin_resources.ray_tpu.worker.end_process import end_process
from marin_resources.ray_tpu.worker.process_tree import adopt_orphans, children, kill_descendants
from marin_resources.ray_tpu.worker.progress_writer import noted_pace
from marin_resources.ray_tpu.worker.result import jsonable, keep_small
from marin_resources.ray_tpu.worker.stop_signal import Stopped
from marin_resources.ray_tpu.worker.watchdog import Watchdog
from marin_resources.step_api.progress import Renewing, Several, Unheard, reports_to
from marin_resources.storage import fault_points
from marin_resources.storage.adoption.records import records_at
from marin_resources.storage.filesystems.sharing import group_may_write, is_shared
from marin_resources.storage.lease.protocol import LeaseHeldError, LeaseLostError
from marin_resources.storage.manifest.manifest import IrregularFileError
from marin_resources.storage.output.attempts import latest_attempt, log_path
from marin_resources.storage.output.late_writes import LateWriteError
from marin_resources.storage.output.notes.cost import spent_of, with_earlier
from marin_resources.storage.output.record import NAME as RECORD
from marin_resources.storage.output.restore import InputGoneError, require_inputs
from marin_resources.storage.output.store import AlreadyDoneError, Claim, Store, StoreError
from marin_resources.storage.transfer.account import Account, charged_to, default_budget_bytes
from marin_resources.storage.transfer.budget import moved_bytes
from marin_resources.storage.upload.writer import Writer, writing_as
from marin_resources.storage.usage.entries import enter, entry_of
from marin_resources.types.errors import MarinError
from marin_resources.types.versioned_json import ControlFileError
from marin_resources.wire.config_json import decode
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.reference import load
from marin_resources.wire.task import Task, paths_read

STOP_RECORD_TIMEOUT_S = 1.2
"""Time limit for recording a stop that the function ignored: Ray kills the worker 3 s after SIGTERM."""
SIGNAL_ARRIVAL_S = 0.2
"""A SIGTERM that caused an exception is certainly received this long after it."""


class ElsewhereHooks(Protocol):
    """Callbacks of the attempt, for code that calls the function in other processes."""

    def began(self) -> None:
        """The function is called now, for the first time."""

    def begin_again(self, number: int) -> Writer:
        """Prepare the output for try `number`, from 2 on; return the writer of its processes."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The place of a task: its process, and how that reports."""

    started_at_s: float = field(default_factory=time.time)
    """When its process started, or the task if the process ran others before; seconds since 1970."""
    job: Mapping[str, Any] | None = None
    """Facts of the job for the record: its id, the cluster's dashboard, the code. None if the task is not a job."""
    allocation: JobAllocation | None = None
    """The reservation of the job for its shards. None if the task is not a job."""
    in_terminal: bool = False
    """Whether the function's output goes where the process's own goes, and not to the attempt's log."""
    tee: bool = False
    """Whether the process's own stdout gets all of the attempt's log too."""
    report: Callable[[Outcome], object] = lambda outcome: None
    """Called with the outcome if the process ends with it, so that `run` does not return."""
    stop_reason: Callable[[], str] = lambda: "stopped from outside"
    """Returns the reason of the stop. Called after the stop."""
    in_task: bool = False
    """Whether the process is that of a Ray task, whose exit code nobody learns of: it notes its crash."""
    call: Callable[[ElsewhereHooks], Any] | None = None
    """Calls the function in other processes, and returns its result. Raises ReportedError."""
    facts: Callable[[], Mapping[str, Any]] = dict
    """Further facts for the record, at the end."""


class ReportedError(Exception):
    """The function failed in another process, which has reported a sentence and a traceback."""

    def __init__(self, sentence: str, traceback: str) -> None:
        super().__init__(sentence)
        self.sentence, self.traceback = sentence, traceback


def run_task(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a task's output in a process of the run's own Ray: from `Task.to_dict()` to `Outcome.to_dict()`."""
    task, placement = Task.from_dict(fields), Placement(in_task=True)
    try:
        install_packages(task.packages)
        outcome = run(task, placement)
    except PackagesError as error:
        outcome = Outcome(end=End.FAILED, error=str(error))
    return outcome.to_dict()


def run(task: Task, placement: Placement) -> Outcome:
    """Compute a task's output in this process. Raises Stopped after recording beside the output that it was stopped."""
    store, redactor = Store(task.prefix), Redactor(secrets_of(task.env))
    stop_signal.block()  # until the attempt can clean up
    adopt_orphans()
    try:
        claim = store.claim(
            task.output,
            attempt=task.attempt,
            resumable=task.resumable,
            run_id=task.run_id,
            stale_lease=task.stale_lease,
            data_prefix=task.data_prefix,
            reads=paths_read(task),
            check_inputs=partial(require_inputs, store, task.inputs),
        )
    except InputGoneError as gone:
        return Outcome(end=End.NOT_BEGUN, error=str(gone))
    except LeaseHeldError as held:
        return Outcome(end=End.HELD, holder=held.holder)
    except (AlreadyDoneError, LeaseLostError):  # another writer has it: the orchestrator looks again
        return Outcome(end=End.ALREADY_DONE)
    except (StoreError, ControlFileError) as error:
        return Outcome(end=End.FAILED, error=redactor.text(str(error)))
    except (OSError, ValueError) as error:
        shown = redactor.text(traceback.format_exc())
        return Outcome(end=End.FAILED, error=redactor.text(str(error)), traceback=shown)
    log, secrets = log_path(claim.path, claim.attempt), secrets_of(task.env)
    with (
        group_may_write(is_shared(claim.data_path)),
        nullcontext() if placement.in_terminal else redirect_output(log, secrets=secrets, tee=placement.tee),
    ):
        claim.lease.observe(Watchdog(claim.path, claim.attempt))
        return _Attempt(task=task, placement=placement, store=store, claim=claim, redactor=redactor).run()


@dataclass(kw_only=True)
class _Attempt:
    """The work at an output whose lease this process holds."""

    task: Task
    placement: Placement
    store: Store
    claim: Claim
    redactor: Redactor
    called_at_s: float | None = None
    """When the function was called, seconds since 1970."""
    call_started_s: float = 0.0
    """When the function was called, by the monotonic clock."""
    compute_s: float | None = None
    cpu_before_s: float = field(default_factory=lambda: cpu_seconds() + cpu_elsewhere_s())
    """CPU seconds of this process and its shards before the attempt: it may have run other tasks."""
    _limit: ExitStack = field(default_factory=ExitStack)
    """Ends the function's time limit."""

    def run(self) -> Outcome:
        try:
            stop_signal.unblock(self._on_ignored_stop)
            result = keep_small(self.redactor.json(jsonable(self._call())))
            fault_points.reach("function returned")
            self.store.publish(self.claim, self._facts(), result)
        except LeaseLostError as error:  # another writer has it: the orchestrator looks again
            print(error, flush=True)
            self.claim.lease.release()
            return self._lost_lease(str(error))
        except LateWriteError as error:  # the next attempt moves it aside, or resumes from it
            failed = self._record_failure(str(error), str(error))
            return failed if failed.end is End.SUCCESS else dataclasses.replace(failed, end=End.LOST)
        except ReportedError as error:
            return self._record_failure(error.sentence, error.traceback)
        except IrregularFileError as error:  # nothing of the function's code is on the stack
            print(error, flush=True)
            return self._record_failure(str(error), "")
        except BaseException as error:
            return self._handle_error(error)
        finally:
            stop_signal.acknowledge()
        return Outcome(end=End.SUCCESS)

    def _call(self) -> Any:
        """Return the function's result. Its reads from other regions are charged to the account of this attempt."""
        task, claim = self.task, self.claim
        mirrors = bool(task.copies) or "mirror://" in json.dumps(task.config)
        self._enter_usage(moved_bytes(claim.path) if mirrors else None)
        if mirrors:
            register_mirrors()
        budget_bytes = default_budget_bytes() if task.mirror_budget_bytes is None else task.mirror_budget_bytes
        account = Account(
            step=task.output.label,
            output_path=claim.path,
            prefix=task.data_prefix or task.prefix,
            attempt=claim.attempt,
            budget_bytes=budget_bytes,
        )
        requirements = ShardRequirements(env=task.env, packages=task.packages)
        writing = writing_as(claim.writer, claim.lease.check)
        reserved = reserve(self.placement.allocation, requirements)
        with charged_to(account), writing, records_at(task.records), reserved:
            for path in task.copies:
                copy_here(path)
            call = self._function()
            before = children()
            with self._limit:
                try:
                    result = call()
                finally:
                    if self.called_at_s is not None:
                        self.compute_s = time.monotonic() - self.call_started_s
                    stop_signal.reinstall_handler()
                    kill_descendants(but=before)  # before the manifest is taken: they may write
                if task.finish:
                    load(task.finish)(claim.data_path)
                return result

    def _function(self) -> Callable[[], Any]:
        """A callable that calls the step's function, in this process or in others."""
        if self.placement.call is not None:
            return partial(self.placement.call, self)
        function, config = load(self.task.fn), decode(self.task.config)

        def call_here() -> Any:
            self.began()
            limit_s = self.task.progress_timeout_s
            with (
                deadline(limit_s, self._on_no_progress, backstop=False) as renew,
                noted_pace(self.claim.path, self.claim.attempt) as pace,
                self._noted_crash() as steps,
                reports_to(Several((Renewing(renew), pace, steps))),
            ):
                return function(config)

        return call_here

    def _noted_crash(self) -> AbstractContextManager[Unheard]:
        """A note of a crash of this process, while the function runs. Ray reports the exit code of a job's own."""
        if self.placement.in_task:
            return crash_noted(crash_name(self.claim.path, self.claim.attempt))
        return nullcontext(Unheard())

    def began(self) -> None:
        """The time limit of the function begins."""
        self.called_at_s, self.call_started_s = time.time(), time.monotonic()
        self._limit.enter_context(deadline(self.task.timeout_s, self._on_timeout))

    def begin_again(self, number: int) -> Writer:
        """Prepare the output for another try of the function; return the writer of its processes."""
        self.claim = self.store.begin_again(self.claim, number, resumable=self.task.resumable)
        return self.claim.writer

    def _enter_usage(self, moved_bytes: int | None) -> None:
        """Note what this attempt holds, for budgets. `moved_bytes`: None if it reads from no other region."""
        task = self.task
        entry = entry_of(
            self.claim.path,
            task.output.label,
            self.claim.attempt,
            task.resources,
            started=self.claim.began,
            run_id=task.run_id,
            moved_bytes=moved_bytes,
        )
        if entry is not None:
            enter(task.prefix, entry)

    def _lost_lease(self, error: str) -> Outcome:
        """Another writer has the lease, unless the attempt's own mark is gone too: a writer would have left it."""
        path, attempt = self.claim.path, self.claim.attempt
        try:
            removed = latest_attempt(path) < attempt
        except (OSError, ControlFileError):  # a store that does not answer: the orchestrator looks again
            removed = False
        if not removed:
            return Outcome(end=End.ALREADY_DONE, error=error)
        sentence = (
            f"{path!r} was removed while the function ran, and the mark of attempt {attempt} with it. A function may "
            "remove only what it has written itself"
        )
        return Outcome(end=End.FAILED, error=sentence)

    def _handle_error(self, error: BaseException) -> Outcome:
        """Record any error of a step's function as its failure and keep the worker; re-raise what stops the process."""
        by_signal = isinstance(error, Stopped | KeyboardInterrupt)  # Ray cancels a task by KeyboardInterrupt
        stopped = by_signal or stop_signal.received(0 if isinstance(error, Exception) else SIGNAL_ARRIVAL_S)
        stop_signal.acknowledge()
        shown = Stopped(self.placement.stop_reason()).with_traceback(error.__traceback__) if stopped else error
        text = "".join(traceback.format_exception(type(shown), shown, below_file(shown, __file__)))
        sentence = str(shown) if stopped else f"{type(error).__name__}: {error}"
        explained = isinstance(error, MarinError) and not stopped  # the attempt's mark keeps the traceback
        outcome = self._record_failure(sentence, text, printed=sentence if explained else text)
        if outcome.end is End.SUCCESS or (isinstance(error, Exception | SystemExit) and not stopped):
            return outcome
        raise error if isinstance(error, KeyboardInterrupt) else shown

    def _record_failure(self, sentence: str, text: str, printed: str | None = None) -> Outcome:
        """Record a failure and its traceback, without secrets. Return success if the output is complete after all.

        `printed` goes to the log, the traceback if None.
        """
        sentence, text = self.redactor.text(sentence), self.redactor.text(text)
        print(text if printed is None else self.redactor.text(printed), flush=True)
        try:
            if not self.store.fail(self.claim, self._facts(), sentence, text):
                return Outcome(end=End.SUCCESS)
        except (LeaseLostError, OSError, ControlFileError) as second:
            sentence = f"{sentence} (and the failure could not be recorded: {second})"
        return Outcome(end=End.FAILED, error=sentence, traceback=text)

    def _on_timeout(self, text: str) -> None:
        """Record that the function exceeded its time limit. The process ends afterwards."""
        self._expired(f"the function took longer than its {self.task.timeout_s:g} s", text)

    def _on_no_progress(self, text: str) -> None:
        """Record that the function hangs. The process ends afterwards."""
        self._expired(f"the function reported no step for {self.task.progress_timeout_s:g} s", text)

    def _expired(self, sentence: str, text: str) -> None:
        self.compute_s = time.monotonic() - self.call_started_s
        outcome = self._record_failure(sentence, text)
        self.placement.report(outcome)
        upload_spool(log_path(self.claim.path, self.claim.attempt))

    def _on_ignored_stop(self) -> None:
        """Record the stop and kill the process, as the function kept running after SIGTERM. Does not return."""
        frames = sys._current_frames()
        text = "".join(traceback.format_stack(frames.get(threading.main_thread().ident or 0)))

        def record() -> None:
            self._record_failure(self.placement.stop_reason(), text)
            upload_spool(log_path(self.claim.path, self.claim.attempt))

        end_process(record, STOP_RECORD_TIMEOUT_S)

    def _facts(self) -> dict[str, Any]:
        """Return the task's facts with those of this attempt, for the record."""
        job = {"job": dict(self.placement.job)} if self.placement.job is not None else {}
        facts = {**self.task.facts, **job, **self.placement.facts()}
        return {**facts, "timing": self._timing(), "spent": self._spent(facts.get("ledger"))}

    def _spent(self, ledger: Mapping[str, Any] | None) -> dict[str, Any]:
        """The resources spent by all attempts at the output. For one on slices, the ledger has the device hours."""
        elsewhere = self.placement.call is not None  # whose hosts report no CPU time
        cpu_s = None if elsewhere else cpu_seconds() + cpu_elsewhere_s() - self.cpu_before_s
        wall_s = (datetime.now(UTC) - self.claim.began).total_seconds()
        spent = with_earlier(spent_of(self.task.resources, wall_s, cpu_s), self.claim.path, self.claim.attempt)
        return spent if ledger is None else {**spent, "device_s": round(3600 * ledger["device_hours"], 3)}

    def _timing(self) -> dict[str, float | None]:
        """Return the seconds in the queue, in everything before the function, and in the function."""
        submitted, started_at_s, called_at_s = self.task.submitted_at, self.placement.started_at_s, self.called_at_s
        queue_s = started_at_s - datetime.fromisoformat(submitted).timestamp() if submitted else None
        setup_s = called_at_s - started_at_s if called_at_s is not None else None
        waits = {"queue_s": queue_s, "setup_s": setup_s, "compute_s": self.compute_s}
        return {name: None if wait_s is None else round(max(0.0, wait_s), 3) for name, wait_s in waits.items()}


def register_mirrors() -> None:
    """Let this process read `mirror://` paths. Call it before another library registers the protocol."""
    from marin_resources.storage.mirror import register  # late, for its weight: most steps read no mirror

    register()


def copy_here(path: str) -> None:
    """Copy a `mirror://` path into this region, unless it is here. Raises as `local_path_of`."""
    from marin_resources.storage.mirror import copy_record, local_path_of  # late, for its weight

    if path.endswith(f"/{RECORD}"):
        copy_record(path)
    else:
        local_path_of(path)


def below_file(error: BaseException, file: str) -> TracebackType | None:
    """Return the traceback below the frames of `file`, which called the function; all of it if it never did."""
    position = error.__traceback__
    while position is not None and position.tb_frame.f_code.co_filename == file:
        position = position.tb_next
    return position or error.__traceback__
