"""`.executor_status`: one token. Marin's older form, one JSON event per line with the last in effect, is read too."""

from __future__ import annotations

import json

from marin_resources.storage.control import control
from marin_resources.storage.paths import join
from marin_resources.types.output import Status
from marin_resources.types.versioned_json import ControlFileError

NAME = ".executor_status"


SHOWN_CHARACTERS = 80


class StatusError(ControlFileError):
    """A status file with an unknown token: one sentence with its path and content."""


def read_status(output_path: str) -> Status | None:
    """The status of the output at `output_path`; None if no attempt has begun, or an old Marin cancelled it."""
    snapshot = control.read(join(output_path, NAME))
    text = snapshot.data.decode(errors="replace").strip() if snapshot else ""
    return parse_status(text, output_path) if text else None


def status_generation(output_path: str) -> str | None:
    """The generation of the status's file; None if it does not exist."""
    snapshot = control.read(join(output_path, NAME))
    return snapshot.generation if snapshot else None


def write_status(output_path: str, status: Status) -> str:
    """Write the status over any earlier one; return the generation of the file."""
    return control.put(join(output_path, NAME), status.value.encode())


def replace_status(output_path: str, status: Status, expected: str | None) -> None:
    """Write the status if its file has the generation `expected` (None: no file). Raises ConflictError."""
    control.write(join(output_path, NAME), status.value.encode(), expected=expected)


def parse_status(text: str, output_path: str) -> Status | None:
    """The status in a file's text. Raises StatusError for a token that neither we nor Marin write."""
    token = _last_event(text) if text.startswith("{") else text
    if token in ("WAITING", "CANCELLED", "UNKNOWN"):  # of Marin in 2024: not complete, and no process at work
        return None
    try:
        return Status(token)
    except ValueError:
        shown = token if len(token) <= SHOWN_CHARACTERS else f"{token[:SHOWN_CHARACTERS]}…"
        raise StatusError(
            f"The status {join(output_path, NAME)!r} is {shown!r}, expected one of {', '.join(Status)}. "
            "Look at the file; a newer version of this software may have written it, or it is damaged: move it aside."
        ) from None


def _last_event(text: str) -> str:
    """The status in the last line; the line itself if it is not an event, such as a truncated one."""
    line = text.splitlines()[-1]
    try:
        return str(json.loads(line)["status"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return line
