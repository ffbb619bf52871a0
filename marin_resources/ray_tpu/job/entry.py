"""The process of a job: does the step that its note asks for, and adds the outcome to the note.

In:  the path of a note (`storage/output/job_notes.py`).
Out: what the step writes, the outcome in the note, an exit code: 0 if the output is made or is another's to make,
     1 if it failed, 143 as of a process that was ended from outside. Then the note says who
     wanted that, and the process adds nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from marin_resources.process import began_s
from marin_resources.ray_tpu.job.on_device import run_on_device
from marin_resources.ray_tpu.job.run_step import do_here, failure_of, place_of, report, stop_phrase, stop_reason
from marin_resources.ray_tpu.worker import stop_signal
from marin_resources.ray_tpu.worker.recorded_failure import recorded_failure
from marin_resources.ray_tpu.worker.stop_signal import Stopped
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.job_notes import JobNote, JobNoteError, read_note
from marin_resources.wire.outcome import End, Outcome

T = TypeVar("T")

OUTAGE_S = 600.0
"""So long a store that does not answer is asked again: the work is done, or is wanted by somebody."""
PAUSE_S = 5.0
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
        _say(f"This job ends: {str(stopped) or stop_reason(path)}.", ENDED)
        os._exit(ENDED)  # Ray kills what is not gone in 3 s; and threads of the function may not end by themselves
    except (JobNoteError, UnavailableError) as error:
        return _say(str(error), 1)
    return _leave_soon(_tell(path, outcome))


def _do(note: JobNote, began_at_s: float) -> Outcome:
    """The step, in this process; on a device, which only a task of Ray's gets, in a process there."""
    task = note.task
    if task.resources.gpu is None and task.resources.tpu is None:
        return do_here(note, place_of(note, began_at_s))

    try:
        return run_on_device(note)
    except Exception as error:  # the way to the worker broke; it may have said beside the output how it ended
        return recorded_failure(task.path, task.attempt) or failure_of(task, error)


def _tell(path: str, outcome: Outcome) -> int:
    """Add the outcome to the note; where that cannot be done it stands in the job's own log."""
    if outcome.error:
        sys.stdout.write(f"{outcome.end}: {outcome.error}\n")
    code = 1 if outcome.end in (End.FAILED, End.LOST) else 0
    try:
        _patiently(lambda: report(path, outcome))
    except (JobNoteError, UnavailableError) as error:
        return _say(f"The outcome {outcome.end.value!r} cannot be noted: {error}", 1)
    return code


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
        return f"attempt {note.attempt} has ended already, as {note.outcome.end.value!r}"
    if note.stop is not None:
        return stop_phrase(note.stop)
    return f"attempt {note.attempt} was given up, as its job {note.ended}"


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
