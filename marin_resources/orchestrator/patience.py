"""How long this process waits for a database that is away: a run's process long, every other one not at all."""

from __future__ import annotations

RUN_S = 900.0

_patience_s = 0.0


def be_patient() -> None:
    """From now on this process waits up to 15 minutes. The executor of a run calls it."""
    global _patience_s
    _patience_s = RUN_S


def patience_s() -> float:
    """In seconds; 0 if the process does not execute a run."""
    return _patience_s
