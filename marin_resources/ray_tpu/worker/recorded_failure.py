"""Read the failure that a worker recorded beside the output before it killed its own process."""

from __future__ import annotations

from marin_resources.storage.output.attempts import read_attempt
from marin_resources.wire.outcome import End, Outcome


def recorded_failure(output_path: str, attempt: int) -> Outcome | None:
    """Return the recorded failure of this attempt, or None."""
    try:
        mark = read_attempt(output_path, attempt)
    except FileNotFoundError:
        return None
    if mark.get("outcome") != "failed":
        return None
    return Outcome(end=End.FAILED, error=mark["error"], traceback=mark.get("traceback", ""))
