"""What runs on the worker: claim the output, call the function, publish. Steps 5 to 7 of a materialization.

In:  a task as JSON.   Out: an outcome as JSON. Nothing raises out of here but what ends the process.
"""

from __future__ import annotations

import dataclasses
import json
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from marin_resources.output import Holder
from marin_resources.ray_tpu.attempt_log import redirect_output
from marin_resources.ray_tpu.backend import End, Outcome
from marin_resources.ray_tpu.config_json import decode, encode, plain
from marin_resources.ray_tpu.reference import load
from marin_resources.ray_tpu.self_stop import stop_this_process
from marin_resources.ray_tpu.task import Task
from marin_resources.storage import fault_points
from marin_resources.storage.account import Account, charged_to, default_budget_bytes
from marin_resources.storage.attempts import log_path
from marin_resources.storage.lease import LeaseHeldError, LeaseLostError
from marin_resources.storage.store import AlreadyDoneError, Claim, Store, StoreError


def run_task(text: str) -> str:
    """Make the output that the task asks for, or say why not."""
    return json.dumps(outcome_to_json(_run(Task.from_json(text))))


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    return {**vars(outcome), "holder": vars(outcome.holder) if outcome.holder else None}


def outcome_from_json(text: str) -> Outcome:
    fields = json.loads(text)
    holder = Holder(**fields["holder"]) if fields["holder"] else None
    return Outcome(**{**fields, "end": End(fields["end"]), "holder": holder})


def _run(task: Task) -> Outcome:
    store = Store(task.prefix)
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
        return Outcome(end=End.FAILED, error=str(error), traceback=traceback.format_exc())
    with redirect_output(log_path(claim.path, claim.attempt)):
        claim.lease.on_lost(lambda reason: stop_this_process(reason, claim.path, claim.attempt))
        return _work(task, store, claim)


def _work(task: Task, store: Store, claim: Claim) -> Outcome:
    try:
        result = jsonable(_call(task, claim))
        fault_points.reach("function returned")
        store.publish(claim, task.facts, result)
    except LeaseLostError as error:  # it is another's by now: the orchestrator looks again
        print(error, flush=True)
        claim.lease.release()
        return Outcome(end=End.ALREADY_DONE)
    except (Exception, SystemExit) as error:  # whatever a step's function raises is its failure; the worker lives on
        return _failed(task, store, claim, error)
    except BaseException as error:  # the process is told to go: say so beside the output, then go
        _failed(task, store, claim, error)
        raise
    return Outcome(end=End.SUCCESS)


def _call(task: Task, claim: Claim) -> Any:
    """The function's result. What it reads from other regions is on the account of this attempt."""
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
    with charged_to(account):
        return load(task.fn)(decode(task.config))


def _failed(task: Task, store: Store, claim: Claim, error: BaseException) -> Outcome:
    told = "".join(traceback.format_exception(type(error), error, _below_this_file(error)))
    print(told, flush=True)
    sentence = f"{type(error).__name__}: {error}"
    try:
        if not store.fail(claim, task.facts, sentence, told):
            return Outcome(end=End.SUCCESS)
    except (LeaseLostError, OSError) as second:
        sentence = f"{sentence} (and the failure could not be recorded: {second})"
    return Outcome(end=End.FAILED, error=sentence, traceback=told)


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
