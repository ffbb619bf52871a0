"""The entry point of a job's process: run the step of its note and add the outcome to the note.

In:  the path of a note (`storage/output/job_notes.py`).
Out: the output of the step, the outcome in the note, and an exit code: 0 if the output is complete or another writer's,
     1 if the step failed, 143 (128 + SIGTERM) if the process was stopped. A stopped process adds no outcome: the
     note already names the run that stopped it.
"""

from __future__ import annotations

import os
import signal
import threading

from marin_resources.host.process import began_s
from marin_resources.ray_tpu.job.on_hosts import run_on_hosts
from marin_resources.ray_tpu.job.retry import retry_while_unavailable
from marin_resources.ray_tpu.job.run_step import (
    describe_stop,
    outcome_of_job_error,
    placement_of,
    run_step,
    stop_reason,
)
from marin_resources.ray_tpu.worker import stop_signal
from marin_resources.ray_tpu.worker.recorded_failure import recorded_failure
from marin_resources.ray_tpu.worker.stop_signal import Stopped
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.notes.job_notes import JobNote, add_outcome, read_note
from marin_resources.types.versioned_json import ControlFileError
from marin_resources.wire.outcome import End, Outcome

EXIT_TIMEOUT_S = 30.0
"""Time limit for threads that a step's function left running: they delay the end of the process."""
EXIT_STOPPED = 128 + signal.SIGTERM
"""The exit code of a process that ended by SIGTERM, as a shell reports it."""


def main(path: str) -> int:
    """Run the job of the note at `path` and return the exit code."""
    process_started_at_s = began_s()
    stop_signal.install()
    try:
        note = retry_while_unavailable(lambda: read_note(path))
        if note is None:
            return _print_and_return(f"The note of this job, {path!r}, does not exist. Materialize the step again.", 1)
        if not note.open:
            return _print_and_return(f"This job does nothing: {_closed_reason(note)}.", 0)
        outcome = _run(note, process_started_at_s)
        stop_signal.acknowledge()
    except Stopped as stopped:
        stop_signal.acknowledge()
        _print_and_return(f"This job ends: {str(stopped) or stop_reason(path)}.", EXIT_STOPPED)
        os._exit(EXIT_STOPPED)  # Ray kills the process after 3 s, and threads of the function may not end by themselves
    except (ControlFileError, UnavailableError) as error:
        return _print_and_return(str(error), 1)
    return _force_exit(_report_outcome(path, outcome))


def _run(note: JobNote, started_at_s: float) -> Outcome:
    """Run the step in this process, or its function on the hosts that have its devices."""
    task = note.task
    if task.resources.gpu is None and task.resources.tpu is None:
        return run_step(note, placement_of(note, started_at_s))
    try:
        return run_on_hosts(note)
    except Exception as error:  # the connection to Ray broke; the end may be recorded beside the output
        return recorded_failure(task.path, task.attempt) or outcome_of_job_error(task, error)


def _report_outcome(path: str, outcome: Outcome) -> int:
    """Add the outcome to the note and return the exit code. An outcome that cannot be added is in the job's own log."""
    if outcome.error:
        print(f"{outcome.end}: {outcome.error}")
    code = 1 if outcome.end in (End.FAILED, End.LOST) else 0
    try:
        retry_while_unavailable(lambda: add_outcome(path, outcome))
    except (ControlFileError, UnavailableError) as error:
        return _print_and_return(f"The outcome {outcome.end.value!r} cannot be added to the note: {error}", 1)
    return code


def _closed_reason(note: JobNote) -> str:
    if note.outcome is not None:
        return f"attempt {note.attempt} has ended already, as {note.outcome.end.value!r}"
    if note.stop is not None:
        return describe_stop(note.stop)
    return f"attempt {note.attempt} was abandoned, as its cluster job {note.ended}"


def _force_exit(code: int) -> int:
    """Return the exit code, and end the process with it after 30 s even if threads of the function keep running."""
    timer = threading.Timer(EXIT_TIMEOUT_S, os._exit, [code])
    timer.daemon = True
    timer.start()
    return code


def _print_and_return(line: str, code: int) -> int:
    print(line, flush=True)
    return code
