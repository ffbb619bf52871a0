"""What runs on the worker: claim the output, call the function, publish. Steps 5 to 7 of a materialization.

In:  a task, and where it runs: a process of the run's own Ray, or a job's.   Out: an outcome. Nothing raises out of
here but what ends the process; and then it is said beside the output, before.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any

from marin_resources.ray_tpu.log.attempt_log import redirect_output
from marin_resources.ray_tpu.log.redact import Redactor, secrets_of
from marin_resources.ray_tpu.log.spool import upload_spool
from marin_resources.ray_tpu.shards.job_allocation import need
from marin_resources.ray_tpu.worker import stop_signal
from marin_resources.ray_tpu.worker.deadline import deadline
from marin_resources.ray_tpu.worker.end_process import end_process
from marin_resources.ray_tpu.worker.self_stop import stop_this_process
from marin_resources.ray_tpu.worker.stop_signal import Stopped
from marin_resources.storage import fault_points
from marin_resources.storage.lease.protocol import LeaseHeldError, LeaseLostError
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.store import AlreadyDoneError, Claim, Store, StoreError
from marin_resources.storage.paths import is_local
from marin_resources.storage.transfer.account import Account, charged_to, default_budget_bytes
from marin_resources.wire.config_json import decode, encode, plain
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.reference import load
from marin_resources.wire.task import Task

LAST_WORDS_S = 1.2
"""Of a worker that was told to stop and did not: Ray kills it 3 s after it told it to."""
SIGNAL_S = 0.2
"""So long after it the signal's arrival is known for sure."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a task runs."""

    began_s: float = field(default_factory=time.time)
    """When its process began, or the task, in a process that had others before; seconds since 1970."""
    job: Mapping[str, Any] | None = None
    """What the record says of the job: its id, the cluster's dashboard, the code. None if it is none."""
    tee: bool = False
    """The process's own stdout gets all that is in the attempt's log, too."""
    tell: Callable[[Outcome], None] = lambda outcome: None
    """Is given the outcome if the process ends with it, so that `run` does not return."""
    stop_reason: Callable[[], str] = lambda: "stopped from outside"
    """Why the process was told to stop, asked when it was."""


def run_task(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a task's output in a process of the run's own Ray: from `Task.to_dict()` to `Outcome.to_dict()`."""
    from marin_resources.ray_tpu.environment.packages import PackagesError, provide_packages

    task, place = Task.from_dict(fields), Place()
    try:
        provide_packages(task.packages)
        outcome = run(task, place)
    except PackagesError as error:
        outcome = Outcome(end=End.FAILED, error=str(error))
    return outcome.to_dict()


def run(task: Task, place: Place) -> Outcome:
    """The same in this very process. Raises Stopped after it has said beside the output that it was told to stop."""
    store, redactor = Store(task.prefix), Redactor(secrets_of(task.env))
    stop_signal.hold()  # until the attempt is there to see to its end
    try:
        claim = store.claim(
            task.output,
            attempt=task.attempt,
            resumable=task.resumable,
            run_id=task.run_id,
            stale_lease=task.stale_lease,
        )
    except LeaseHeldError as held:
        return Outcome(end=End.HELD, holder=held.holder)
    except (AlreadyDoneError, LeaseLostError):  # it is another's by now: the orchestrator looks again
        return Outcome(end=End.ALREADY_DONE)
    except (StoreError, OSError, ValueError) as error:
        told = redactor.text(traceback.format_exc())
        return Outcome(end=End.FAILED, error=redactor.text(str(error)), traceback=told)
    with redirect_output(log_path(claim.path, claim.attempt), secrets=secrets_of(task.env), tee=place.tee):
        claim.lease.on_lost(lambda reason: stop_this_process(reason, claim.path, claim.attempt))
        return _Attempt(task=task, place=place, store=store, claim=claim, redactor=redactor).make()


@dataclass(kw_only=True)
class _Attempt:
    """One try at an output that this process may write."""

    task: Task
    place: Place
    store: Store
    claim: Claim
    redactor: Redactor
    called_at_s: float | None = None
    """When the function was called, seconds since 1970."""
    call_began_s: float = 0.0
    """The same on a clock that never goes back."""
    compute_s: float | None = None

    def make(self) -> Outcome:
        try:
            stop_signal.let_go(self._give_up)
            result = self.redactor.json(jsonable(self._call()))
            fault_points.reach("function returned")
            self.store.publish(self.claim, self._facts(), result)
        except LeaseLostError as error:  # it is another's by now: the orchestrator looks again
            print(error, flush=True)
            self.claim.lease.release()
            return Outcome(end=End.ALREADY_DONE)
        except BaseException as error:
            return self._ended_by(error)
        finally:
            stop_signal.taken()
        return Outcome(end=End.SUCCESS)

    def _call(self) -> Any:
        """The function's result. What it reads from other regions is on the account of this attempt."""
        task, claim = self.task, self.claim
        if "mirror://" in json.dumps(task.config):
            from marin_resources.storage.mirror import register

            register()  # before another library takes the name
        budget_bytes = default_budget_bytes() if task.mirror_budget_bytes is None else task.mirror_budget_bytes
        account = Account(
            step=task.output.name,
            output_path=claim.path,
            prefix=task.prefix,
            attempt=claim.attempt,
            budget_bytes=budget_bytes,
        )
        with charged_to(account), need(task.env, task.packages):
            function, config = load(task.fn), decode(task.config)
            with deadline(task.timeout_s, self._expire):
                self.called_at_s, self.call_began_s = time.time(), time.monotonic()
                try:
                    return function(config)
                finally:
                    self.compute_s = time.monotonic() - self.call_began_s
                    stop_signal.handle_again()

    def _ended_by(self, error: BaseException) -> Outcome:
        """Whatever a step's function raises is its failure, and the worker lives on; unless it has been told to go."""
        by_signal = isinstance(error, Stopped | KeyboardInterrupt)  # the latter is how Ray cancels a task
        stopped = by_signal or stop_signal.received(0 if isinstance(error, Exception) else SIGNAL_S)
        stop_signal.taken()
        shown = Stopped(self.place.stop_reason()).with_traceback(error.__traceback__) if stopped else error
        told = "".join(traceback.format_exception(type(shown), shown, _below_this_file(shown)))
        outcome = self._fail(str(shown) if stopped else f"{type(error).__name__}: {error}", told)
        if outcome.end is End.SUCCESS or (isinstance(error, Exception | SystemExit) and not stopped):
            return outcome
        raise error if isinstance(error, KeyboardInterrupt) else shown

    def _fail(self, sentence: str, told: str) -> Outcome:
        """Record a failure, without secrets; success if the output is complete after all."""
        sentence, told = self.redactor.text(sentence), self.redactor.text(told)
        print(told, flush=True)
        try:
            if not self.store.fail(self.claim, self._facts(), sentence, told):
                return Outcome(end=End.SUCCESS)
        except (LeaseLostError, OSError) as second:
            sentence = f"{sentence} (and the failure could not be recorded: {second})"
        return Outcome(end=End.FAILED, error=sentence, traceback=told)

    def _expire(self, where: str) -> None:
        """The function has taken too long: the last words of this process."""
        self.compute_s = time.monotonic() - self.call_began_s
        self._last_words(f"the function took longer than its {self.task.timeout_s:g} s", where, tell=True)

    def _give_up(self) -> None:
        """The process was told to stop, and the function goes on all the same. Does not return."""
        frames = sys._current_frames()
        where = "".join(traceback.format_stack(frames.get(threading.main_thread().ident or 0)))
        end_process(lambda: self._last_words(self.place.stop_reason(), where, tell=False), LAST_WORDS_S)

    def _last_words(self, sentence: str, where: str, *, tell: bool) -> None:
        outcome = self._fail(sentence, where)
        if tell:
            self.place.tell(outcome)
        if not is_local(self.claim.path):
            upload_spool(log_path(self.claim.path, self.claim.attempt))

    def _facts(self) -> dict[str, Any]:
        """What the record says beside what was known before."""
        job = {"job": dict(self.place.job)} if self.place.job is not None else {}
        return {**self.task.facts, **job, "timing": self._timing()}

    def _timing(self) -> dict[str, float | None]:
        """What it waited for: a place to run, everything before the function, the function."""
        submitted, began_s, called_s = self.task.submitted_at, self.place.began_s, self.called_at_s
        queue_s = began_s - datetime.fromisoformat(submitted).timestamp() if submitted else None
        setup_s = called_s - began_s if called_s is not None else None
        waits = {"queue_s": queue_s, "setup_s": setup_s, "compute_s": self.compute_s}
        return {name: None if wait_s is None else round(max(0.0, wait_s), 3) for name, wait_s in waits.items()}


def _below_this_file(error: BaseException) -> TracebackType | None:
    """The traceback from the step's function on; all of it if the function was never reached."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename == __file__:
        place = place.tb_next
    return place or error.__traceback__


def jsonable(result: Any) -> dict[str, Any]:
    """A function's result as the record holds it. Raises TypeError or ValueError for what is not JSON."""
    if result is None:
        return {}
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        result = plain(encode(result, "result"))
    if not isinstance(result, Mapping):
        raise TypeError(f"The function returned {result!r}, expected a dict, a dataclass or None.")
    return plain(encode(dict(result), "result"))
