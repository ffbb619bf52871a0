"""The way of one output, as the orchestrator goes it: look, wait, check the inputs, submit, wait, confirm.

    1 look       done already -> reused: no task, no process
    2 held       someone works on it -> attach, if it is a job of ours; else wait, saying for whom, then look again; a
                 holder that is gone is followed
    3 inputs     complete? else an error that names them
    4 submit     the worker claims, computes and publishes; its log is passed on
    5 outcome    done -> confirm; the worker died -> again, on a budget of its own; failed -> an error

The orchestrator writes nothing of an output. Of an attempt whose worker is gone it notes how it ended. If it dies
itself, what is running is found again by what lies beside the output.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from marin_resources.output import Holder, Match, Observed, Output
from marin_resources.ray_tpu.backend import Backend, Handle
from marin_resources.storage.files import exists
from marin_resources.storage.lease.watch import LeaseWatch
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.store import Store, other_version_message
from marin_resources.storage.paths import is_local
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

WAIT_POLL_S = 0.5
BUCKET_POLL_S = 2.0
"""Each look is a few requests."""
TELL_EVERY_S = 60.0


class ProduceError(RuntimeError):
    """The output could not be made: a sentence that names the step, and the function's traceback if there is one."""

    def __init__(self, sentence: str, traceback: str = "") -> None:
        super().__init__(sentence)
        self.traceback = traceback


@dataclass(frozen=True, kw_only=True)
class Request:
    """An output that is wanted, and how it is made."""

    output: Output
    inputs: Mapping[str, Output]
    """What must be complete before, by step name."""
    external: tuple[str, ...] = ()
    """Paths that no step makes, and that must be there before."""
    task: Callable[[int, Mapping[str, Observed]], Task]
    """The task for attempt number n, from what was found of its inputs."""


class LeftRunningError(ProduceError):
    """Nobody waits for the output any more, and its compute goes on: a sentence that says how to come back to it."""


@dataclass(frozen=True, kw_only=True)
class Ears:
    """What is told while an output is made."""

    say: Callable[[str], None]
    """Given each sentence of the orchestrator's."""
    on_log: Callable[[str], None]
    """Given each line that the step prints."""
    on_job: Callable[[str | None], None] = lambda job: None
    """Given the id of the cluster's job that is waited for; None when it is waited for no longer. May block."""


@dataclass(frozen=True, kw_only=True)
class Produced:
    observed: Observed
    reused: bool
    waited_s: float = 0.0
    lost_workers: int = 0


async def produce(
    request: Request,
    store: Store,
    backend: Callable[[], Backend],
    *,
    ears: Ears,
    lost_worker_budget: int = 3,
    wait_for_others: bool = True,
    goes_on: Callable[[], bool] = lambda: False,
) -> Produced:
    """See to it that the output is complete. Raises ProduceError.

    `backend` is called only if there is something to compute, so a reuse starts nothing. Without `wait_for_others` an
    output that someone else is making is an error, and not waited for. Cancelling stops the compute first; if it can
    outlive this process and `goes_on` says that it should, LeftRunningError is raised in place of CancelledError.
    """
    name = request.output.name
    waited_s, lost, stale = 0.0, 0, None
    while True:
        observed = await _look(store, request.output)
        if observed.done:
            return Produced(observed=observed, reused=lost == 0, waited_s=waited_s, lost_workers=lost)
        if observed.holder is not None and observed.holder.generation != stale:
            if not wait_for_others:
                raise ProduceError(_held_sentence(name, observed.holder))
            attempt = observed.holder.attempt
            handle = await backend().attach(observed.path, observed.holder)
            if handle is None:
                seconds, stale = await _wait_for_holder(store, request.output, observed, ears.say)
                waited_s += seconds
                continue
        else:
            inputs = await _require_inputs(request, store)
            attempt = await backend().attempt_for(observed.path)
            task = dataclasses.replace(request.task(attempt, inputs), stale_lease=stale)
            await asyncio.to_thread(backend().check, task)
            handle = await _submit(task, backend(), ears)
        where = Attempt(output=request.output, path=observed.path, number=attempt)
        outcome = await _wait(where, handle, store, backend(), ears, goes_on)
        if outcome.end is End.SUCCESS:
            return await _confirm(request.output, store, waited_s, lost)
        if outcome.end in (End.FAILED, End.LOST) and not outcome.may_live:
            # a worker that was ended from outside has not said so beside the output
            await asyncio.to_thread(_mark_stopped, store, where, outcome.error, ears.say)
        if outcome.end is End.FAILED:
            log = await asyncio.to_thread(_where_its_log_is, observed.path, attempt, handle)
            raise ProduceError(_failed_sentence(name, outcome, log), outcome.traceback)
        if outcome.end is End.LOST:
            lost += 1
            if lost > lost_worker_budget:
                raise ProduceError(
                    f"Step {name!r} lost its worker {lost} times, the last time because {outcome.error}. "
                    f"Look at {log_path(observed.path, attempt)!r}; run again to go on."
                )
            ears.say(f"{name}: {outcome.error}; trying again ({lost} of {lost_worker_budget})")


async def _look(store: Store, output: Output) -> Observed:
    observed = (await asyncio.to_thread(store.look, [output]))[output]
    if observed.match is Match.OTHER:
        raise ProduceError(f"Step {output.name!r}: {other_version_message(output, observed.path)}")
    return observed


async def _wait_for_holder(
    store: Store, output: Output, observed: Observed, say: Callable[[str], None]
) -> tuple[float, str | None]:
    """Seconds waited until the lease is another's or free; and its generation, if its holder is gone."""
    holder, watch, poll_s = observed.holder, LeaseWatch(), WAIT_POLL_S if is_local(observed.path) else BUCKET_POLL_S
    assert holder is not None
    began = told = time.monotonic()
    say(f"{output.name}: waiting, as it is being made by {holder.describe()}")
    while observed.holder is not None and observed.holder.owner == holder.owner:
        await asyncio.sleep(poll_s)
        looked_at_s = watch.begin()
        observed = await _look(store, output)
        if observed.holder is not None and watch.is_stale(observed.holder, looked_at_s):
            say(f"{output.name}: no sign of life for {observed.holder.ttl_s:g} s, so it is taken over")
            return time.monotonic() - began, observed.holder.generation
        if observed.holder is not None and time.monotonic() - told > TELL_EVERY_S:
            told = time.monotonic()
            say(f"{output.name}: still waiting, {told - began:.0f} s, for {observed.holder.describe()}")
    return time.monotonic() - began, None


async def _require_inputs(request: Request, store: Store) -> dict[str, Observed]:
    found = await asyncio.to_thread(store.look, request.inputs.values())
    missing = [f"{name!r} ({found[o].path})" for name, o in request.inputs.items() if not found[o].done]
    missing += [f"{path!r}" for path in request.external if not await asyncio.to_thread(exists, path)]
    if missing:
        raise ProduceError(
            f"Step {request.output.name!r} needs {', '.join(missing)}, which is not complete. "
            f"""Materialize what it reads first: --select '+key:"{request.output.name}"' takes it with all it needs."""
        )
    return {name: found[output] for name, output in request.inputs.items()}


@dataclass(frozen=True, kw_only=True)
class Attempt:
    output: Output
    path: str
    number: int


async def _submit(task: Task, backend: Backend, ears: Ears) -> Handle:
    handle = await backend.submit(task)
    where = f" {handle.describe()}" if handle.describe() else ""
    log = log_path(task.path, task.attempt)
    ears.say(f"{task.output.name}: computing {task.path}{where} (attempt {task.attempt}, log {log})")
    return handle


async def _wait(
    attempt: Attempt, handle: Handle, store: Store, backend: Backend, ears: Ears, goes_on: Callable[[], bool]
) -> Outcome:
    try:
        await asyncio.to_thread(ears.on_job, handle.job)
        outcome = await backend.wait(handle, ears.on_log)
        await asyncio.to_thread(ears.on_job, None)
        return outcome
    except Exception:  # whatever it is, nobody waits for the job now
        await asyncio.to_thread(ears.on_job, None)
        raise
    except asyncio.CancelledError:
        import anyio

        with anyio.CancelScope(shield=True):  # the loop is being cancelled: nothing else would be waited for
            left = await backend.leave(handle, wanted=goes_on())
            if left is not None:
                raise LeftRunningError(f"Step {attempt.output.name!r}: {left}") from None
            await backend.stop(handle, "the run was stopped")
            reason = "stopped with its run, by Ctrl-C or Terminate"
            await asyncio.to_thread(_mark_stopped, store, attempt, reason, ears.say)
        raise


def _mark_stopped(store: Store, attempt: Attempt, reason: str, say: Callable[[str], None]) -> None:
    """Where the store is away just then, the lease becomes stale by itself, and the next claim takes it over."""
    try:
        store.mark_stopped(attempt.output, attempt.number, reason)
    except OSError as error:
        say(f"{attempt.output.name}: that attempt {attempt.number} has stopped could not be noted ({error})")


async def _confirm(output: Output, store: Store, waited_s: float, lost: int) -> Produced:
    observed = await _look(store, output)
    if not observed.done:
        raise ProduceError(
            f"Step {output.name!r} reported success and {observed.path!r} has status {observed.status!r}. "
            "Someone else changes this output; see that only one deployment writes this prefix."
        )
    return Produced(observed=observed, reused=False, waited_s=waited_s, lost_workers=lost)


def _held_sentence(name: str, holder: Holder) -> str:
    return (
        f"Step {name!r} is being made by {holder.describe()}, and this run was told not to wait. "
        "Run again when it is done, or let it wait."
    )


def _failed_sentence(name: str, outcome: Outcome, log: str) -> str:
    return (
        f"Step {name!r} failed: {outcome.error.rstrip('.')}. Its log: {log}. "
        "Mend it and materialize again; what is complete is reused."
    )


def _where_its_log_is(path: str, attempt: int, handle: Handle) -> str:
    """The attempt's own log; that of its job, if it has ended before the attempt began."""
    log = log_path(path, attempt)
    return log if handle.job is None or exists(log) else f"`marin cluster logs {handle.job}`"
