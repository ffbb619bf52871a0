"""`.executor_info`: the record of an output. Its config, inputs, code, process and result, in Marin's fields and ours.

It is written once, with the output; a reuse never rewrites it. Marin's own records are read too: with a version they
are compared like ours, without one they are "unverified".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from marin_resources.output import Match, Output, identity_of
from marin_resources.storage.control import control
from marin_resources.storage.paths import join
from marin_resources.versioned_json import ANY, ControlFileError, Required, VersionedJson

NAME = ".executor_info"
FORMAT_VERSION = 1


class RecordError(ControlFileError):
    """A record that cannot be read: one sentence with its path."""


SHAPE = {
    "name": str,
    "identity": str,
    "version": dict,
    "prefix": str,
    "data_path": str,
    "data_prefix": str,
    "cluster": str,
    "adopted": {"from": Required(str), "why": Required(str), "by": str, "at": str, "of": dict},
    "adopted_inputs": {ANY: {"from": Required(str), "why": Required(str)}},
    "dependencies": [str],
    "attempt": int,
    "duration_s": float,
    "result": dict,
    "manifest": {"digest": str, "files": int, "bytes": int},
    "inputs": {ANY: str},
    "source_digest": {
        "function": Required(str),
        "digest": Required(str),
        "files_digest": Required(str),
        "modules": Required({ANY: Required(str)}),
    },
    "environment": {"lock_digest": str, "python": str},
    "timing": {ANY: float},
    "tries": [dict],
    "ledger": {ANY: float},
    "bytes_in": int,
    "spent": {
        **dict.fromkeys(("wall_s", "cpu_s", "reserved_cpu_s", "device_s"), float),
        "pool": str,
        "attempts": int,
        "unknown_attempts": int,
    },
    "job": {"id": Required(str), "dashboard": Required(str)},
}
"""The fields that this software reads again. A config has the shape that its step gave it."""
FORMAT = VersionedJson(kind="record", newest=FORMAT_VERSION, error=RecordError, default=0, shape=SHAPE)
"""Marin's records have no format version."""


def read_record(output_path: str) -> dict[str, Any] | None:
    """The record of an output, or None if it has none. Raises ControlFileError and UnavailableError."""
    path = join(output_path, NAME)
    found = control.read(path)
    return None if found is None else FORMAT.parse(found.data, path)


def data_path_of(output_path: str) -> str:
    """Where the data of the complete output at `output_path` are: another path if its record says so. Raises as
    `read_record`."""
    return str((read_record(output_path) or {}).get("data_path") or output_path)


def record_generation(output_path: str) -> str | None:
    """The generation of the record's file; None if it does not exist."""
    found = control.read(join(output_path, NAME))
    return found.generation if found else None


def write_record(output_path: str, record: Mapping[str, Any]) -> None:
    """Write the record of a complete output over any earlier one."""
    control.put(join(output_path, NAME), _text(record))


def replace_record(output_path: str, record: Mapping[str, Any], expected: str | None) -> None:
    """Write the record if its file has the generation `expected` (None: no file). Raises ConflictError."""
    control.write(join(output_path, NAME), _text(record), expected=expected)


def match(record: Mapping[str, Any] | None, output: Output) -> Match:
    """Whether a record is of this output: the whole version is compared, not its six digits."""
    if record is None:
        return Match.UNVERIFIED
    identity = record.get("identity") or (identity_of(record["version"]) if record.get("version") else None)
    if identity is None:
        return Match.UNVERIFIED
    return Match.SAME if identity == output.identity else Match.OTHER


def _text(record: Mapping[str, Any]) -> bytes:
    return (json.dumps({"format_version": FORMAT_VERSION, **record}, indent=2, allow_nan=False) + "\n").encode()
