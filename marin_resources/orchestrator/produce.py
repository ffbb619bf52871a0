"""Produce one output, as the orchestrator does it: look, wait, check the inputs, submit, wait, look again.

    1 look       complete already: reuse it, without a task or a process; the first look may be a moment old
    2 lease      held by another: attach, if its holder is a job of ours; else wait until it is released or expires
    3 inputs     complete? else an error that names them
    4 submit     the worker claims, computes and publishes; its log is passed on
    5 outcome    success: look again; worker lost: retry, on a budget of its own; failed, or crashed twice at the same
                 place: an error

The orchestrator writes nothing of an output. It only records how an attempt ended whose worker is gone. If it dies
itself, the next run finds the running compute by the files beside the output.
"""

from __future__ import annotations

import asyncio
import dataclasses
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from marin_resources.orchestrator.progress_reporter import watched_pace
from marin_resources.ray_tpu.backend import Backend, Handle, SubmissionLeftError
from marin_resources.ray_tpu.site import NoSiteError, PlacementRequest, Site
from marin_resources.storage.files import exists, find_below
from marin_resources.storage.filesystems.rights import ADVICE, why_unwritable
from marin_resources.storage.lease.watch import LeaseWatch
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.notes import active_attempts
from marin_resources.storage.output.notes.collection import read_collected
from marin_resources.storage.output.notes.history import past_records
from marin_resources.storage.output.notes.progress import Progress
from marin_resources.storage.output.restore import restore_output
from marin_resources.storage.output.store import Store, other_version_message
from marin_resources.storage.paths import is_local, join
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Holder, Match, Observed, Output, below
from marin_resources.types.versioned_json import ControlFileError
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task

DISK_POLL_S = 0.5
BUCKET_POLL_S = 2.0
"""Each look at a bucket takes a few requests."""
LOG_EVERY_S = 60.0
SHOWN_INPUTS = 5
FAILED_ATTEMPTS = "failed_attempts"
"""In the metadata of a failure: the logs of the attempts that failed."""
MAX_VANISHED = 3
"""Limit of losses of the lease in a row, during the compute and with no other writer in sight."""


class ProduceError(MarinError):
    """The output was not produced: a sentence that names the step, and the function's traceback if it raised."""

    def __init__(self, sentence: str, traceback: str = "", log: str = "") -> None:
        """`log` is that of the attempt that failed, by which all runs that waited for it know it."""
        super().__init__(sentence)
        self.traceback, self.log = traceback, log


class DetachedError(ProduceError):
    """This process detached from the compute, which keeps running: a sentence with the way to attach to it again."""


@dataclass(frozen=True, kw_only=True)
class ProduceRequest:
    """The output to produce, and how to compute it."""

    output: Output
    selection: str
    """The output's asset, in Dagster's selection syntax."""
    inputs: Mapping[str, Output]
    """Outputs that must be complete first, by step name."""
    external: tuple[str, ...] = ()
    """Paths without a step, which must exist first: relative to the prefix, or absolute."""
    mirrored: tuple[str, ...] = ()
    """Such paths that are read from whichever region has them. They need not exist yet."""
    needs: Callable[[Mapping[str, Observed], Mapping[str, str]], PlacementRequest]
    """Return the facts that decide its cluster, given its observed inputs and the locations of its external paths."""
    task: Callable[[int, Mapping[str, Observed], Site | None], Task]
    """Return the task of attempt number n, given its observed inputs, and the cluster that it goes to."""


@dataclass(frozen=True, kw_only=True)
class RunCallbacks:
    """Functions that report the progress of one output to its run."""

    log: Callable[[str], None]
    """Takes each sentence of the orchestrator."""
    on_log: Callable[[str], None]
    """Takes each line that the step prints."""
    on_pace: Callable[[Progress], None] = lambda pace: None
    """Takes the progress of its function, at a bounded rate (`progress_reporter.py`). May block."""
    on_job: Callable[[str | None], None] = lambda job: None
    """Takes the id of the cluster's job that the run waits for; None when it stops waiting. May block."""


@dataclass(frozen=True, kw_only=True)
class Produced:
    observed: Observed
    reused: bool
    waited_s: float = 0.0
    """Seconds spent waiting for another run's lease."""
    lost_workers: int = 0


async def produce(
    request: ProduceRequest,
    store: Store,
    backend: Callable[[], Backend],
    *,
    callbacks: RunCallbacks,
    recent: Callable[[Iterable[Output]], Mapping[Output, Observed]] = lambda outputs: {},
    lost_worker_budget: int = 3,
    wait_for_others: bool = True,
    should_detach: Callable[[], bool] = lambda: False,
) -> Produced:
    """Return the output when it is complete. Raises ProduceError.

    `recent` returns the states that were read a moment ago, of the output and its inputs. The first try takes them as
    they are: the claim, and its check of the inputs, find later changes, and then every state is read again.
    `backend` is called only to compute, so a reuse starts nothing. Without `wait_for_others`, an output that another
    run computes is an error. A cancellation stops the compute; if the compute can outlive this process and
    `should_detach` returns True, the compute keeps running and DetachedError replaces CancelledError.
    """
    name = request.output.label
    waited_s, lost, expired, vanished, taken = 0.0, 0, None, 0, 0
    crashes: dict[str, int] = {}  # -> the attempt in which it came first
    just_read = recent([request.output, *request.inputs.values()])
    while True:
        recent_states, just_read = just_read, {}
        observed = await _look(store, request.output, recent_states)
        if observed.done:
            return Produced(observed=observed, reused=lost + taken == 0, waited_s=waited_s, lost_workers=lost)
        if observed.holder is not None and observed.holder.generation != expired:
            vanished = 0  # another writer it was
            if not wait_for_others:
                raise ProduceError(_held_sentence(name, observed.holder))
            attempt = observed.holder.attempt
            handle = await backend().attach(observed.path, observed.holder)
            if handle is None:
                seconds, expired = await _wait_for_holder(store, request.output, observed, callbacks.log)
                waited_s += seconds
                continue
        elif observed.status is None and await asyncio.to_thread(restore_output, store, observed.path):
            callbacks.log(f"{name}: it was collected and is complete again, without computing")
            continue
        else:
            await asyncio.to_thread(_require_right, request, observed.path, store.prefix)
            inputs, external = await _require_inputs(request, store, backend().prefixes, recent_states)
            attempt = await backend().attempt_for(observed.path)
            site = await _site(request, inputs, external, observed.path, backend())
            if site is not None:
                callbacks.log(f"{name}: {site.describe()}")
            task = dataclasses.replace(request.task(attempt, inputs, site), stale_lease=expired)
            await asyncio.to_thread(backend().check, task)
            handle = await _submit(task, backend(), callbacks, should_detach)
        current = Attempt(output=request.output, path=observed.path, number=attempt)
        outcome = await _wait(current, handle, store, backend(), callbacks, should_detach)
        if outcome.end is End.ALREADY_DONE and outcome.error:
            vanished += 1
            if vanished == MAX_VANISHED:
                raise ProduceError(_vanished_sentence(name, observed.path, outcome.error))
        if outcome.end is End.SUCCESS:
            observed = await _look(store, request.output)
            if observed.done:
                return Produced(observed=observed, reused=False, waited_s=waited_s, lost_workers=lost)
            why = await asyncio.to_thread(_taken_away, store, request.output)
            taken += 1
            if why is None or taken == MAX_VANISHED:
                raise ProduceError(_changed_sentence(name, observed))
            callbacks.log(f"{name}: complete, and {why}; looking again")
            continue
        if outcome.end in (End.FAILED, End.LOST) and not outcome.may_live:
            # a worker that was killed could not record it beside the output
            await asyncio.to_thread(_mark_stopped, store, current, outcome.error, callbacks.log)
        if outcome.end is End.FAILED:
            log = await asyncio.to_thread(_log_location, observed.path, attempt, handle)
            raise ProduceError(_failed_sentence(name, outcome, log), outcome.traceback, log)
        if outcome.end is End.NOT_BEGUN:  # on no budget: the step has not failed
            callbacks.log(f"{name}: {outcome.error}; submitting it again")
        if outcome.end is End.LOST:
            if outcome.crash and (first := crashes.setdefault(outcome.crash, attempt)) != attempt:
                log = await asyncio.to_thread(_log_location, observed.path, attempt, handle)
                raise ProduceError(_crashed_sentence(name, outcome.crash, (first, attempt), log), "", log)
            lost += 1
            if lost > lost_worker_budget:
                raise ProduceError(
                    f"Step {name!r} lost its worker {lost} times, the last time because {outcome.error}. "
                    f"Look at {log_path(observed.path, attempt)!r}; run again to continue."
                )
            callbacks.log(f"{name}: {outcome.error}; trying again ({lost} of {lost_worker_budget})")


def _require_right(request: ProduceRequest, path: str, prefix: str) -> None:
    """Raise ProduceError if this user may not write the output, or enter its attempt below the prefix."""
    if why := why_unwritable(path) or why_unwritable(join(prefix, active_attempts.FOLDER)):
        raise ProduceError(f"Step {request.output.label!r} cannot be computed: {why}. {ADVICE}")


async def _look(store: Store, output: Output, recent_states: Mapping[Output, Observed] | None = None) -> Observed:
    if recent_states is not None and output in recent_states and recent_states[output].idle:
        return recent_states[output]
    observed = (await asyncio.to_thread(store.look, [output]))[output]
    if observed.damage:
        raise ProduceError(f"Step {output.label!r}: {observed.damage}")
    if observed.match is Match.OTHER:
        raise ProduceError(f"Step {output.label!r}: {other_version_message(output, observed.path)}")
    return observed


async def _wait_for_holder(
    store: Store, output: Output, observed: Observed, log: Callable[[str], None]
) -> tuple[float, str | None]:
    """Wait until the lease changes hands, is released or expires. Return seconds, and an expired lease's generation."""
    holder, watch, poll_s = observed.holder, LeaseWatch(), DISK_POLL_S if is_local(observed.path) else BUCKET_POLL_S
    assert holder is not None
    began_s = logged_s = time.monotonic()
    log(f"{output.label}: waiting, as it is being computed by {holder.describe()}")
    while observed.holder is not None and observed.holder.owner == holder.owner:
        await asyncio.sleep(poll_s)
        looked_at_s = watch.begin()
        observed = await _look(store, output)
        if observed.holder is not None and watch.is_stale(observed.holder, looked_at_s):
            log(f"{output.label}: no sign of life for {observed.holder.ttl_s:g} s, so it is taken over")
            return time.monotonic() - began_s, observed.holder.generation
        if observed.holder is not None and time.monotonic() - logged_s > LOG_EVERY_S:
            logged_s = time.monotonic()
            log(f"{output.label}: still waiting, {logged_s - began_s:.0f} s, for {observed.holder.describe()}")
    return time.monotonic() - began_s, None


async def _site(
    request: ProduceRequest,
    inputs: Mapping[str, Observed],
    external: Mapping[str, str],
    path: str,
    backend: Backend,
) -> Site | None:
    """The cluster of a fleet that computes it. Raises ProduceError."""
    try:
        return await backend.site(lambda: request.needs(inputs, external), path)
    except NoSiteError as error:
        raise ProduceError(str(error)) from None


async def _require_inputs(
    request: ProduceRequest, store: Store, prefixes: Sequence[str], recent_states: Mapping[Output, Observed]
) -> tuple[dict[str, Observed], dict[str, str]]:
    """The observed inputs, by label, and the locations of the external paths, which may be below other prefixes."""
    states = await asyncio.to_thread(_look_at_inputs, request, store, recent_states)
    damaged = [f"{name!r}: {states[o].damage}" for name, o in request.inputs.items() if states[o].damage]
    if damaged:
        raise ProduceError(f"Step {request.output.label!r} needs {' '.join(damaged)}")
    await asyncio.to_thread(_require_adopted, request, states)
    missing = [f"{name!r} ({states[o].path})" for name, o in request.inputs.items() if not states[o].done]
    external = {name: await asyncio.to_thread(find_below, name, (store.prefix, *prefixes)) for name in request.external}
    missing += [f"{below(store.prefix, name)!r}" for name, path in external.items() if path is None]
    if missing:
        more = f" and {len(missing) - SHOWN_INPUTS} more" if len(missing) > SHOWN_INPUTS else ""
        key = request.output.partition
        partition = "" if key is None else f" --partition {shlex.quote(key)}"
        raise ProduceError(
            f"Step {request.output.label!r} needs {', '.join(missing[:SHOWN_INPUTS])}{more}, which is not complete. "
            f"Materialize what it reads first: --select '+{request.selection}'{partition} takes it with all it needs."
        )
    if prefixes:
        for name in request.mirrored:
            external[name] = await asyncio.to_thread(find_below, name, (store.prefix, *prefixes))
    observed = {name: states[output] for name, output in request.inputs.items()}
    return observed, {name: path for name, path in external.items() if path is not None}


def _require_adopted(request: ProduceRequest, states: Mapping[Output, Observed]) -> None:
    """Adopted data are not below an output's own path, where nobody else may remove them. Raises ProduceError."""
    for name, output in request.inputs.items():
        if states[output].adopted is not None and not exists(states[output].data_path):
            raise ProduceError(
                f"Step {request.output.label!r} needs {name!r}, which is adopted from {states[output].data_path!r}, "
                f"and nothing exists there. Restore the data, "
                f"or take the adoption back with the --undo of `marin adopt`."
            )


def _look_at_inputs(
    request: ProduceRequest, store: Store, recent_states: Mapping[Output, Observed]
) -> dict[Output, Observed]:
    """The observed inputs. Those that were collected are restored."""
    complete = {o: recent_states[o] for o in request.inputs.values() if o in recent_states and recent_states[o].done}
    states = {**complete, **store.look(o for o in request.inputs.values() if o not in complete)}
    restored = [
        o for o, seen in states.items() if not seen.damage and seen.status is None and restore_output(store, seen.path)
    ]
    return {**states, **store.look(restored)}


@dataclass(frozen=True, kw_only=True)
class Attempt:
    output: Output
    path: str
    number: int


async def _submit(task: Task, backend: Backend, callbacks: RunCallbacks, should_detach: Callable[[], bool]) -> Handle:
    try:
        handle = await backend.submit(task, callbacks.on_job, should_detach)
    except SubmissionLeftError as error:
        raise DetachedError(f"Step {task.output.name!r}: {error}") from None
    except Exception:  # this run does not wait for the job
        await asyncio.to_thread(callbacks.on_job, None)
        raise
    where = f" {handle.describe()}" if handle.describe() else ""
    log = log_path(task.path, task.attempt)
    path = below(task.data_prefix, task.output.relative()) if task.data_prefix else task.path
    callbacks.log(f"{task.output.label}: computing {path}{where} (attempt {task.attempt}, log {log})")
    return handle


async def _wait(
    attempt: Attempt,
    handle: Handle,
    store: Store,
    backend: Backend,
    callbacks: RunCallbacks,
    should_detach: Callable[[], bool],
) -> Outcome:
    try:
        await asyncio.to_thread(callbacks.on_job, handle.job)
        async with watched_pace(attempt.path, attempt.number, callbacks.on_pace, callbacks.log):
            outcome = await backend.wait(handle, callbacks.on_log)
        await asyncio.to_thread(callbacks.on_job, None)
        return outcome
    except Exception:  # after any error the run no longer waits for the job
        await asyncio.to_thread(callbacks.on_job, None)
        raise
    except asyncio.CancelledError:
        import anyio

        with anyio.CancelScope(shield=True):  # the loop is being cancelled and would wait for nothing else
            message = await backend.detach(handle, force=should_detach())
            if message is not None:
                raise DetachedError(f"Step {attempt.output.label!r}: {message}") from None
            await backend.stop(handle, "the run was stopped")
            reason = "stopped with its run, by Ctrl-C or Terminate"
            await asyncio.to_thread(_mark_stopped, store, attempt, reason, callbacks.log)
        raise


def _mark_stopped(store: Store, attempt: Attempt, reason: str, log: Callable[[str], None]) -> None:
    """If the store is unavailable, the lease expires by itself, and the next claim takes it over."""
    try:
        store.mark_stopped(attempt.output, attempt.number, reason)
    except (OSError, ControlFileError) as error:
        log(f"{attempt.output.label}: the stop of attempt {attempt.number} could not be recorded ({error})")


def _taken_away(store: Store, output: Output) -> str | None:
    """The cause by which the output was withdrawn since it was published, as a phrase; None if none is recorded."""
    note = read_collected(store.prefix, output.relative()) if output.override is None else None
    if note is not None:
        return f"collected since by marin gc of {note.by}"
    if past_records(store.prefix, output.relative()):
        return "removed since, by marin gc or to compute it again"
    return None


def _changed_sentence(name: str, observed: Observed) -> str:
    status = f"the status {observed.status}" if observed.status is not None else "no status"
    return (
        f"Step {name!r} reported success and {observed.path!r} has {status}. "
        "Someone else changes this output; see that only one deployment writes this prefix."
    )


def _vanished_sentence(name: str, path: str, error: str) -> str:
    return (
        f"Step {name!r} was computed {MAX_VANISHED} times, and no other writer has the output {path!r}: "
        f"{error.removesuffix(' Nothing is published; run again.')} Its function removes the folder of the output, or "
        "something else does. A function may remove only what it has written itself; correct it and run again."
    )


def _held_sentence(name: str, holder: Holder) -> str:
    return (
        f"Step {name!r} is being computed by {holder.describe()}, and this run is configured not to wait. "
        "Run again when it is done, or let it wait."
    )


def _failed_sentence(name: str, outcome: Outcome, log: str) -> str:
    return (
        f"Step {name!r} failed: {outcome.error.rstrip('.')}. Its log: {log}. "
        "Fix it and materialize again; complete outputs are reused."
    )


def _crashed_sentence(name: str, crash: str, attempts: tuple[int, int], log: str) -> str:
    return (
        f"Step {name!r} crashes: in attempts {attempts[0]} and {attempts[1]} alike, {crash}, and its machine was not "
        f"lost. Its log: {log}. Fix it and materialize again; complete outputs are reused."
    )


def _log_location(path: str, attempt: int, handle: Handle) -> str:
    """The attempt's own log; the log of its job, if the job ended before the attempt began."""
    log = log_path(path, attempt)
    return log if handle.job is None or exists(log) else f"`marin cluster logs {handle.job}`"
