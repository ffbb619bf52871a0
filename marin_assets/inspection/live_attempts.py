"""Progress of the attempts that run now: host, start, steps and speed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.notes.job_notes import note_path, read_note
from marin_resources.storage.output.notes.progress import read_progress
from marin_resources.storage.output.state_summary import State, state_of
from marin_resources.storage.output.store import LOOK_THREADS
from marin_resources.types.durations import readable_duration
from marin_resources.types.output import Holder, Observed
from marin_resources.types.versioned_json import ControlFileError

SHOWN_CHARACTERS = 100
"""Characters printed of the last line of a log."""


@dataclass(frozen=True, kw_only=True)
class LiveAttempt:
    attempt: int
    host: str
    pid: int
    run_id: str | None
    since: str
    job: str | None = None
    """The Ray job that runs it; None if it is a task of the run's own Ray."""
    cluster: str | None = None
    """The address of the job's cluster."""
    step: int | None = None
    """The last one that the function has reported."""
    steps_per_s: float | None = None
    step_at: str | None = None
    of: int | None = None
    """The number of all its steps, if it has reported that."""
    left_s: float | None = None
    """Seconds until the last step, at this speed."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Other numbers that the function reported last, such as its loss."""
    last_line: str = ""
    """The last line of its log."""
    problem: str = ""
    """One sentence about a file that could not be read."""


def running_of(observed: Iterable[Observed]) -> dict[str, LiveAttempt]:
    """The attempts of these outputs that run now, by path: three small reads for each."""
    now = [(output.path, output.holder) for output in observed if state_of(output) is State.RUNNING and output.holder]
    with ThreadPoolExecutor(LOOK_THREADS) as pool:  # starts at most one thread per output
        return dict(pool.map(lambda attempt: (attempt[0], _running(*attempt)), now))


def _running(path: str, holder: Holder) -> LiveAttempt:
    # late, for its weight
    from marin_resources.ray_tpu.log.last_line import last_line

    running = LiveAttempt(
        attempt=holder.attempt, host=holder.host, pid=holder.pid, run_id=holder.run_id, since=holder.since
    )
    if not holder.attempt:  # Marin's, which leaves no more than its lease
        return running
    try:
        if (note := read_note(note_path(path, holder.attempt))) is not None:
            running = dataclasses.replace(running, job=note.job, cluster=note.dashboard)
        if (pace := read_progress(path, holder.attempt)) is not None:
            fields = {
                attribute.name: getattr(pace, attribute.name)
                for attribute in dataclasses.fields(pace)
                if attribute.name != "at"
            }
            running = dataclasses.replace(running, **fields, step_at=pace.at, left_s=pace.left_s)
        line = last_line(log_path(path, holder.attempt))
    except (ControlFileError, UnavailableError, OSError) as error:  # the states are shown all the same
        return dataclasses.replace(running, problem=str(error))
    return dataclasses.replace(running, last_line=line)


def describe_running(running: LiveAttempt, now: datetime) -> str:
    """One line: duration, job, step, speed, and its problem or the last line of its log."""
    parts = [f"attempt {running.attempt}" if running.attempt else "", _elapsed(running.since, now)]
    if running.job is not None:
        parts.append(f"cluster job {running.job} on {running.cluster}")
    if running.step is not None:
        of = "" if running.of is None else f" of {running.of}"
        speed = "" if running.steps_per_s is None else f" at {_speed(running.steps_per_s)}"
        parts.append(f"step {running.step}{of}{speed}")
    if running.left_s is not None:
        parts.append(f"{readable_duration(running.left_s)} left")
    if "loss" in running.numbers:
        parts.append(f"loss {running.numbers['loss']:.4g}")
    message = running.problem or running.last_line
    short = message if len(message) <= SHOWN_CHARACTERS or running.problem else f"{message[: SHOWN_CHARACTERS - 1]}…"
    return ", ".join(filter(None, parts)) + (f": {short}" if short else "")


def _elapsed(since: str, now: datetime) -> str:
    try:
        began = datetime.fromisoformat(since)
    except ValueError:  # a lease that could not be read
        return ""
    began = began if began.tzinfo is not None else began.replace(tzinfo=UTC)
    return f"for {readable_duration((now - began).total_seconds())}"


def _speed(steps_per_s: float) -> str:
    """ "4.2 steps/s", "12.5 s/step" """
    if 0 < steps_per_s < 1:
        return f"{1 / steps_per_s:.3g} s/step"
    return f"{steps_per_s:.3g} steps/s"
