"""`.executor_info`: who made an output, from what, with which code. Marin's fields, and ours beside them.

Written once, with the output; a reuse never rewrites it. Records of Marin's own are read: those with a version are
compared like ours, those without one are "unverified".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from marin_resources.output import Match, Output, identity_of
from marin_resources.storage.control import control
from marin_resources.storage.paths import join

NAME = ".executor_info"
FORMAT_VERSION = 1


class RecordError(ValueError):
    """A record that cannot be read: one sentence with its path."""


def read_record(output_path: str) -> dict[str, Any] | None:
    """The record beside an output, or None. Raises RecordError for one of a newer format than this one knows."""
    path = join(output_path, NAME)
    found = control.read(path)
    if found is None:
        return None
    try:
        record = json.loads(found.data)
    except ValueError as error:
        raise RecordError(
            f"{path!r} is not JSON ({error}). Look at the file; move it aside if it is damaged."
        ) from error
    if not isinstance(record, dict):
        raise RecordError(f"The record {path!r} is not a JSON object. Look at it; move it aside if it is damaged.")
    if record.get("format_version", 0) > FORMAT_VERSION:
        raise RecordError(
            f"The record {path!r} has format version {record['format_version']!r} and this software knows up to "
            f"{FORMAT_VERSION}. Update this checkout."
        )
    return record


def record_generation(output_path: str) -> str | None:
    """The generation of the record's file, None if there is none."""
    found = control.read(join(output_path, NAME))
    return found.generation if found else None


def write_record(output_path: str, record: Mapping[str, Any]) -> None:
    """Write the record of a complete output, whatever was there."""
    control.put(join(output_path, NAME), _text(record))


def replace_record(output_path: str, record: Mapping[str, Any], expected: str | None) -> None:
    """Write the record in place of the generation that its writer knows (None: of no file). Raises ConflictError."""
    control.write(join(output_path, NAME), _text(record), expected=expected)


def match(record: Mapping[str, Any] | None, output: Output) -> Match:
    """Whether a record is of this very output: the whole version is compared, not its six digits."""
    if record is None:
        return Match.UNVERIFIED
    identity = record.get("identity") or (identity_of(record["version"]) if record.get("version") else None)
    if identity is None:
        return Match.UNVERIFIED
    return Match.SAME if identity == output.identity else Match.OTHER


def _text(record: Mapping[str, Any]) -> bytes:
    return (json.dumps({"format_version": FORMAT_VERSION, **record}, indent=2, allow_nan=False) + "\n").encode()
