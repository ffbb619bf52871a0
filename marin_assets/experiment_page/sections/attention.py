"""The beginning of a page: the outputs that failed, died, are blocked, or are computed now.

In:  the steps.   Out: for each such output its last error line or its progress, and the last lines of its log.
A log or a mark that cannot be read is a sentence in place of the log.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from marin_assets.experiment_page.addresses import Addresses
from marin_assets.experiment_page.page_steps import URGENT, PageStep
from marin_assets.inspection.live_attempts import LiveAttempt, describe_running, running_of
from marin_resources.ray_tpu.log.last_line import last_lines
from marin_resources.scrub.scrubber import Scrubber
from marin_resources.storage.output.attempts import latest_attempt, log_path
from marin_resources.storage.output.state_summary import State, state_of
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Match, Observed

MOST = 20
"""Outputs that are shown with their logs."""
LOG_LINES = 40
LINE_CHARACTERS = 300
URGENT_STATES = (State.FAILED, State.DEAD, State.BLOCKED, State.RUNNING)


@dataclass(frozen=True, kw_only=True)
class Attention:
    """One output that is not complete, and that was begun."""

    label: str
    step: str
    state: State
    line: str
    """The last line of its error, or its progress."""
    log: str = ""
    """The last lines of its log."""
    problem: str = ""
    """A sentence about a log that cannot be read."""
    address: str = ""
    """The page of the output on the server of this page; "" in a file."""
    log_address: str = ""
    """The page of its log, likewise."""


def attention_of(steps: Sequence[PageStep], scrub: Scrubber, addresses: Addresses) -> tuple[list[Attention], int]:
    """The outputs that need attention, the failed ones first, and the number of those that are left out."""
    urgent = [
        (step, key, observed)
        for step in steps
        for key, observed in step.outputs.items()
        if state_of(observed) in URGENT_STATES
    ]
    urgent.sort(key=lambda output: URGENT.index(state_of(output[2])))
    shown = urgent[:MOST]
    progress = _progress([observed for _, _, observed in shown], scrub)
    return [
        _attention(step, key, observed, progress.get(observed.path, ""), scrub, addresses)
        for step, key, observed in shown
    ], len(urgent) - len(shown)


def _progress(observed: Sequence[Observed], scrub: Scrubber) -> dict[str, str]:
    """Path -> a phrase about the attempt that runs now: its duration, steps and last line; not its machine."""

    def public(attempt: LiveAttempt) -> LiveAttempt:
        line, problem = scrub.text(attempt.last_line), scrub.text(attempt.problem)  # before the line is cut
        return dataclasses.replace(attempt, job=None, cluster=None, last_line=line, problem=problem)

    now = datetime.now(UTC)
    running = running_of(observed)
    return {path: describe_running(public(attempt), now) for path, attempt in running.items()}


def _attention(
    step: PageStep, key: str | None, observed: Observed, progress: str, scrub: Scrubber, addresses: Addresses
) -> Attention:
    state = state_of(observed)
    about = Attention(
        label=step.label(key),
        step=step.name,
        state=state,
        line=_line(observed, progress, scrub),
        address=addresses.output(observed.path),
    )
    if state is State.BLOCKED:
        return about
    try:
        attempt = observed.record.attempt or latest_attempt(observed.path)
        log = log_path(observed.path, attempt)
        lines = last_lines(log, LOG_LINES) if attempt else []
    except (MarinError, OSError) as error:  # the page is about more than this log
        return dataclasses.replace(about, problem=scrub.text(f"Its log cannot be read: {error}"))
    text = scrub.text("\n".join(lines))  # before lines are cut: a part of a secret has no shape
    return dataclasses.replace(
        about,
        log="\n".join(line[:LINE_CHARACTERS] for line in text.splitlines()),
        log_address=addresses.log(log) if lines else "",
    )


def _line(observed: Observed, progress: str, scrub: Scrubber) -> str:
    match state_of(observed):
        case State.RUNNING:
            return progress or "is computed now"
        case State.DEAD:
            return "its worker is gone, and recorded no end"
        case State.BLOCKED if observed.match is Match.OTHER:
            return "another version's output is stored at its path"
        case State.BLOCKED:
            return scrub.text(observed.damage)
    error = scrub.text(str(observed.record.error or ""))  # as a whole: a key has several lines
    lines = [line for line in error.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "its last attempt was stopped"
