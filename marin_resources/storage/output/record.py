"""`.executor_info`: the record of an output. Its config, inputs, code, process and result, in Marin's fields and ours.

It is written once, with the output; a reuse never rewrites it. Marin's own records are read too: with a version they
are compared like ours, without one they are "unverified".
"""

from __future__ import annotations

import json

from marin_resources.storage.control import control
from marin_resources.storage.paths import join
from marin_resources.types.output import Match, Output, identity_of
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError, VersionedJson

NAME = ".executor_info"
FORMAT_VERSION = 1


class RecordError(ControlFileError):
    """A record that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(kind="record", newest=FORMAT_VERSION, error=RecordError, default=0, shape=Record.shape)
"""Marin's records have no format version."""


def read_record(output_path: str) -> Record | None:
    """The record of an output, or None if it has none. Raises ControlFileError and UnavailableError."""
    path = join(output_path, NAME)
    snapshot = control.read(path)
    return None if snapshot is None else parse_record(snapshot.data, path)


def parse_record(data: bytes, path: str) -> Record:
    """The record in a file. Raises RecordError."""
    return Record.from_dict(FORMAT.parse(data, path))


def data_path_of(output_path: str) -> str:
    """The path of the data of the complete output at `output_path`: another one if its record names it. Raises as
    `read_record`."""
    record = read_record(output_path)
    return (record and record.data_path) or output_path


def record_generation(output_path: str) -> str | None:
    """The generation of the record's file; None if it does not exist."""
    snapshot = control.read(join(output_path, NAME))
    return snapshot.generation if snapshot else None


def write_record(output_path: str, record: Record) -> None:
    """Write the record of a complete output over any earlier one."""
    control.put(join(output_path, NAME), _text(record))


def replace_record(output_path: str, record: Record, expected: str | None) -> None:
    """Write the record if its file has the generation `expected` (None: no file). Raises ConflictError."""
    control.write(join(output_path, NAME), _text(record), expected=expected)


def match(record: Record | None, output: Output) -> Match:
    """Whether a record is of this output: the whole version is compared, not its six digits."""
    identity = identity_in(record) if record is not None else None
    if identity is None:
        return Match.UNVERIFIED
    return Match.SAME if identity == output.identity else Match.OTHER


def identity_in(record: Record) -> str | None:
    """The identity of the output with this record; None if the record has no version."""
    return record.identity or (identity_of(record.version) if record.version else None)


def _text(record: Record) -> bytes:
    fields = {"format_version": FORMAT_VERSION, **record.to_dict()}
    return (json.dumps(fields, indent=2, allow_nan=False) + "\n").encode()
