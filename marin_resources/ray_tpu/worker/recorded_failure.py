"""Read the failure that a worker recorded beside the output before it killed its own process."""

from __future__ import annotations

import logging

from marin_resources.storage.output.attempts import read_attempt
from marin_resources.types.versioned_json import ControlFileError
from marin_resources.wire.outcome import End, Outcome

log = logging.getLogger(__name__)


def recorded_failure(output_path: str, attempt: int) -> Outcome | None:
    """Return the recorded failure of this attempt, or None; a mark that cannot be read records none."""
    try:
        mark = read_attempt(output_path, attempt)
    except FileNotFoundError:
        return None
    except ControlFileError as error:
        log.warning("%s", error)
        return None
    if mark.get("outcome") != "failed":
        return None
    return Outcome(end=End.FAILED, error=mark.get("error") or "", traceback=mark.get("traceback") or "")
