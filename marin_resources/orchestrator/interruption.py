"""Why a run ends before its steps do, told by the executor to the steps that it cancels.

Compute that outlives the run's process is ended if someone wanted that, and left to go on if it is only the process
that has to go.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Interruption(enum.Enum):
    TERMINATED = "Terminated on request"
    """In the UI, or with Dagster's API."""
    CTRL_C = "Interrupted by Ctrl-C"
    SIGTERM = "This process was told to stop (SIGTERM)"
    """As in a redeployment: nobody said that the work is not wanted any more."""


_why: dict[str, Interruption] = {}
_left: dict[str, frozenset[Interruption]] = {}


def note_interruption(run_id: str, why: Interruption) -> None:
    """The executor's word, before it cancels the steps of the run."""
    _why[run_id] = why


def leave_on(run_id: str, reasons: Iterable[Interruption]) -> None:
    """A back end's word: the run's compute outlives it, and goes on after these."""
    _left[run_id] = frozenset(reasons)


def goes_on(run_id: str) -> bool:
    """Whether the run's compute is to be left to go on, now that the run is interrupted."""
    return _why.get(run_id) in _left.get(run_id, ())


def forget_run(run_id: str) -> None:
    _why.pop(run_id, None)
    _left.pop(run_id, None)
