"""`.executor_info`: who made an output, from what, with which code. Marin's fields, and ours beside them.

Written once, with the output; a reuse never rewrites it. Records of Marin's own are read: those with a version are
compared like ours, those without one are "unverified".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_resources.output import Match, Output, identity_of
from marin_resources.storage.files import join, read_json, write_json

NAME = ".executor_info"
FORMAT_VERSION = 1


class RecordError(ValueError):
    """A record that cannot be read: one sentence with its path."""


def read_record(output_path: str) -> dict[str, Any] | None:
    """The record beside an output, or None. Raises RecordError for one of a newer format than this one knows."""
    path = join(output_path, NAME)
    try:
        record = read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not isinstance(record, dict):
        raise RecordError(f"The record {path!r} is not a JSON object. Look at it; move it aside if it is damaged.")
    if record.get("format_version", 0) > FORMAT_VERSION:
        raise RecordError(
            f"The record {path!r} has format version {record['format_version']!r} and this software knows up to "
            f"{FORMAT_VERSION}. Update this checkout."
        )
    return record


def write_record(output_path: str, record: Mapping[str, Any]) -> None:
    write_json(join(output_path, NAME), {"format_version": FORMAT_VERSION, **record})


def match(record: Mapping[str, Any] | None, output: Output) -> Match:
    """Whether a record is of this very output: the whole version is compared, not its six digits."""
    if record is None:
        return Match.UNVERIFIED
    identity = record.get("identity") or (identity_of(record["version"]) if record.get("version") else None)
    if identity is None:
        return Match.UNVERIFIED
    return Match.SAME if identity == output.identity else Match.OTHER
