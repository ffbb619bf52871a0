"""`.executor_status`: one token. Marin's older form, one JSON event a line of which the last counts, is read too."""

from __future__ import annotations

import json

from marin_resources.output import Status
from marin_resources.storage.control import control
from marin_resources.storage.paths import join

NAME = ".executor_status"


class StatusError(ValueError):
    """A status file that says nothing known: one sentence with the path and what it holds."""


def read_status(output_path: str) -> Status | None:
    """The status of the output at `output_path`, or None where nobody has begun, or an old Marin gave up."""
    found = control.read(join(output_path, NAME))
    text = found.data.decode().strip() if found else ""
    return parse_status(text, output_path) if text else None


def status_generation(output_path: str) -> str | None:
    """The generation of the status's file, None if there is none."""
    found = control.read(join(output_path, NAME))
    return found.generation if found else None


def write_status(output_path: str, status: Status) -> str:
    """Write the status, whatever was there; returns the generation of the file."""
    return control.put(join(output_path, NAME), status.value.encode())


def replace_status(output_path: str, status: Status, expected: str | None) -> None:
    """Write the status in place of the generation that its writer knows (None: of no file). Raises ConflictError."""
    control.write(join(output_path, NAME), status.value.encode(), expected=expected)


def parse_status(text: str, output_path: str) -> Status | None:
    """Raises StatusError for a word that neither we nor any Marin wrote."""
    word = _last_event(text) if text.startswith("{") else text
    if word in ("WAITING", "CANCELLED", "UNKNOWN"):  # Marin of 2024: nothing complete, nobody working
        return None
    try:
        return Status(word)
    except ValueError:
        raise StatusError(
            f"The status of {output_path!r} is {word!r}, expected one of {', '.join(Status)}. "
            f"Look at {NAME!r} there; a newer version of the software may have written it."
        ) from None


def _last_event(text: str) -> str:
    """The status in the last line, or the line itself if it is no event: cut off, or another program's."""
    line = text.splitlines()[-1]
    try:
        return str(json.loads(line)["status"])
    except (ValueError, KeyError, TypeError):
        return line
