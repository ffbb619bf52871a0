"""The process of a job: does the step that its note asks for, and adds the outcome to the note.

In:  the path of a note (`storage/output/job_notes.py`).
Out: what the step writes, the outcome in the note, an exit code: 0 if the output is made or is another's to make,
     1 if it failed, 143 as of a process that was ended from outside. Then the note says who
     wanted that, and the process adds nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from marin_resources.process import began_s
from marin_resources.ray_tpu.backend import End, Outcome
from marin_resources.ray_tpu.job.prepare import REFUSALS, prepare
from marin_resources.ray_tpu.log.redact import Redactor, secrets_of
from marin_resources.ray_tpu.shards.job_allocation import hold
from marin_resources.ray_tpu.worker import stop_signal
from marin_resources.ray_tpu.worker.run_task import Place, noted_failure, outcome_to_json, run
from marin_resources.ray_tpu.worker.stop_signal import Stopped
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.job_notes import JobNote, JobNoteError, add_outcome, note_path, read_note
from marin_resources.wire.task import Task

T = TypeVar("T")

OUTAGE_S = 600.0
"""So long a store that does not answer is asked again: the work is done, or is wanted by somebody."""
PAUSE_S = 5.0
REASON_S = 0.5
"""So long the reason of a stop is looked for: there are 3 s in all."""
EXIT_S = 30.0
"""So long threads that a step's function has left may keep the process."""
ENDED = 128 + signal.SIGTERM
"""The exit code, as a shell tells it."""


def main(path: str) -> int:
    """Returns the exit code."""
    process_began_s = began_s()
    stop_signal.install()
    try:
        note = _patiently(lambda: read_note(path))
        if note is None:
            return _say(f"The note of this job, {path!r}, is not there. Materialize the step again.", 1)
        if not note.open:
            return _say(f"This job does nothing: {_why_closed(note)}.", 0)
        outcome = _do(note, process_began_s)
        stop_signal.taken()
    except Stopped as stopped:
        stop_signal.taken()
        _say(f"This job ends: {str(stopped) or _stop_reason(path)}.", ENDED)
        os._exit(ENDED)  # Ray kills what is not gone in 3 s; and threads of the function may not end by themselves
    except (JobNoteError, UnavailableError) as error:
        return _say(str(error), 1)
    return _leave_soon(_tell(path, outcome))


def place_of(note: JobNote, began_at_s: float) -> Place:
    """The job of a note, for the worker: here, or in a process that the job has begun on another node."""
    path = note_path(note.task["path"], note.attempt)
    return Place(
        began_s=began_at_s,
        job={"id": note.submission_id, "dashboard": note.dashboard, "code": dict(note.code)},
        tell=lambda outcome: _add(path, outcome),
        stop_reason=lambda: _stop_reason(path),
        tee=True,
    )


def do_here(note: JobNote, place: Place, *, lent_while_waiting: bool = False) -> Outcome:
    """The step of a note, in this very process. What keeps it from beginning is an outcome, too."""
    task = Task.from_json(json.dumps(dict(note.task)))
    try:
        with hold(task.resources.cpus, task.resources.memory_bytes, lent_while_waiting=lent_while_waiting):
            return run(prepare(note), place)
    except REFUSALS as error:
        return Outcome(end=End.FAILED, error=str(error))
    except Exception as error:  # whatever it is, those who wait are told, and not only the log of the job
        return _failure(task, error)


def _do(note: JobNote, began_at_s: float) -> Outcome:
    """The step, in this process; on a device, which only a task of Ray's gets, in a process there."""
    text = json.dumps(dict(note.task))
    task = Task.from_json(text)
    if task.resources.gpu is None and task.resources.tpu is None:
        return do_here(note, place_of(note, began_at_s))
    from marin_resources.ray_tpu.job.on_device import run_on_device

    try:
        return run_on_device(text, note)
    except Exception as error:  # the way to the worker broke; it may have said beside the output how it ended
        return noted_failure(task.path, task.attempt) or _failure(task, error)


def _failure(task: Task, error: Exception) -> Outcome:
    """What to tell of an error that is none of the step's function, without secrets; all of it is in the job's log."""
    shown = Redactor(secrets_of(task.env))
    told = shown.text("".join(traceback.format_exception(error)))
    sys.stdout.write(told)
    return Outcome(end=End.FAILED, error=shown.text(f"{type(error).__name__}: {error}"), traceback=told)


def _tell(path: str, outcome: Outcome) -> int:
    """Add the outcome to the note; where that cannot be done it stands in the job's own log."""
    if outcome.error:
        sys.stdout.write(f"{outcome.end}: {outcome.error}\n")
    code = 1 if outcome.end in (End.FAILED, End.LOST) else 0
    try:
        _patiently(lambda: _add(path, outcome))
    except (JobNoteError, UnavailableError) as error:
        return _say(f"The outcome {outcome.end.value!r} cannot be noted: {error}", 1)
    return code


def _add(path: str, outcome: Outcome) -> None:
    add_outcome(path, outcome_to_json(outcome))


def _patiently(act: Callable[[], T]) -> T:
    """What it returns, though the store be away for minutes."""
    end_s = time.monotonic() + OUTAGE_S
    while True:
        try:
            return act()
        except UnavailableError as error:
            if time.monotonic() + PAUSE_S > end_s:
                raise
            _say(f"{error} Trying again in {PAUSE_S:g} s.", 0)
            time.sleep(PAUSE_S)


def _why_closed(note: JobNote) -> str:
    if note.outcome is not None:
        return f"attempt {note.attempt} has ended already, as {note.outcome['end']!r}"
    if note.stop is not None:
        return _told(note.stop)
    return f"attempt {note.attempt} was given up, as its job {note.ended}"


def _stop_reason(path: str) -> str:
    """Who has stopped this job and why, as far as its note says so and can be read in time."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="stop-reason")
    try:
        note = pool.submit(read_note, path).result(REASON_S)
    except Exception:  # the store may be away or slow; the process has to go all the same
        note = None
    finally:
        pool.shutdown(wait=False)
    return _told(note.stop) if note is not None and note.stop is not None else "stopped from outside (SIGTERM)"


def _told(stop: Any) -> str:
    return f"stopped by {stop['by']}: {str(stop['reason']).rstrip('.')}"


def _leave_soon(code: int) -> int:
    """See to it that the process ends with this code, though the function has left threads that do not end."""
    timer = threading.Timer(EXIT_S, os._exit, [code])
    timer.daemon = True
    timer.start()
    return code


def _say(line: str, code: int) -> int:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    return code
