"""Collected outputs: nothing needs them, so they are withdrawn until their grace time ends. One note for each.

    <prefix>/.marin/collected/<name>-<version>.json                 of an output
    <prefix>/.marin/collected/<name>-<version>/<partition>.json     of a partition

An output is collected if it has a note and no status. Its data, its record and its commit object are where they were:
writing the status makes it complete again. A note beside a status has no effect: the writer of one of them was killed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.files import names_below
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed, Output
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

FOLDER = ".marin/collected"
"""Folder below the prefix."""
FORMAT_VERSION = 1
SUFFIX = ".json"
THREADS = 32


class CollectedError(ControlFileError):
    """A note that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="note of a collected output",
    newest=FORMAT_VERSION,
    error=CollectedError,
    shape={
        **dict.fromkeys(("name", "version", "identity", "by", "at", "until"), Required(str)),
        "partition": str,
        "why": str,
        "bytes": int,
        "files": int,
        "data_path": str,
        "purge": {"owner": Required(str), "of": Required(str)},
    },
)


@dataclass(frozen=True, kw_only=True)
class Purge:
    """The removal of an output's data."""

    owner: str
    """Owner of the lease of the process that removes them, by which its claim of the commit object is known."""
    of: str
    """Owner of the commit object that was claimed; "" without one."""


@dataclass(frozen=True, kw_only=True)
class Collected:
    """A collected output."""

    name: str
    version: str
    identity: str
    partition: str | None = None
    by: str
    """The person or schedule that has collected it."""
    why: str = ""
    at: str
    """ISO 8601, UTC."""
    until: str
    """End of the grace time, likewise: until then it is kept."""
    bytes: int | None = None
    files: int | None = None
    data_path: str | None = None
    """The path of its data, if that is another one than its own."""
    purge: Purge | None = None
    """The purge that removes its data; None as long as it can be restored."""
    generation: str = dataclasses.field(default="", compare=False)

    @property
    def output(self) -> Output:
        return Output(name=self.name, version=self.version, identity=self.identity, partition=self.partition)

    @property
    def relative(self) -> str:
        """The output's path below the prefix."""
        return self.output.relative()

    def is_over(self, now: datetime) -> bool:
        """Whether its grace time has ended. `now` has a time zone."""
        return now >= datetime.fromisoformat(self.until)


def read_collected(prefix: str, relative: str) -> Collected | None:
    """The note of the output at this path below the prefix; None if it has none. Raises ControlFileError and
    UnavailableError."""
    path = note_path(prefix, relative)
    snapshot = control.read(path)
    return None if snapshot is None else _parse(path, snapshot)


def list_collected(prefix: str) -> list[Collected]:
    """All notes below the prefix, by one listing and a read of each; sorted by path. Raises as `read_collected`."""
    names = sorted(name for name in names_below(join(prefix, FOLDER)) if name.endswith(SUFFIX))
    with ThreadPoolExecutor(THREADS) as pool:
        notes = pool.map(lambda name: read_collected(prefix, name.removesuffix(SUFFIX)), names)
        return [note for note in notes if note is not None]


def with_collected(prefix: str, observed: Mapping[Output, Observed]) -> dict[Output, Observed]:
    """The observed outputs, with `collected` set in those that were; by one listing, if one is missing."""
    missing = {o for o, seen in observed.items() if seen.status is None and seen.holder is None and not seen.damage}
    names = frozenset(names_below(join(prefix, FOLDER))) if missing else frozenset()
    noted = {o for o in missing if o.override is None and o.relative() + SUFFIX in names}
    return {o: dataclasses.replace(seen, collected=True) if o in noted else seen for o, seen in observed.items()}


def write_collected(prefix: str, note: Collected) -> Collected:
    """Write the note over an earlier one."""
    generation = control.put(note_path(prefix, note.relative), _text(note))
    return dataclasses.replace(note, generation=generation)


def replace_collected(prefix: str, note: Collected) -> Collected:
    """Write the changed note in place of the generation that was read. Raises ConflictError."""
    generation = control.write(note_path(prefix, note.relative), _text(note), expected=note.generation)
    return dataclasses.replace(note, generation=generation)


def remove_collected(prefix: str, note: Collected) -> None:
    """Remove the note as it was read. What was written since stays."""
    try:
        control.delete(note_path(prefix, note.relative), expected=note.generation)
    except ConflictError:
        return


def note_path(prefix: str, relative: str) -> str:
    return join(prefix, FOLDER, relative + SUFFIX)


def _text(note: Collected) -> bytes:
    fields: dict[str, Any] = {field.name: getattr(note, field.name) for field in dataclasses.fields(note)}
    del fields["generation"]
    fields["purge"] = vars(note.purge) if note.purge else None
    present = {name: value for name, value in fields.items() if value is not None}
    return (json.dumps({"format_version": FORMAT_VERSION, **present}, indent=2) + "\n").encode()


def _parse(path: str, snapshot: control.Snapshot) -> Collected:
    fields = FORMAT.parse(snapshot.data, path)
    present = {field.name: fields[field.name] for field in dataclasses.fields(Collected) if field.name in fields}
    purge = Purge(owner=fields["purge"]["owner"], of=fields["purge"]["of"]) if fields.get("purge") else None
    note = Collected(**{**present, "purge": purge, "generation": snapshot.generation})
    try:
        if datetime.fromisoformat(note.until).tzinfo is None:
            raise ValueError("it has no time zone")
    except ValueError as error:
        raise FORMAT.damaged(path, f"has until={note.until!r} ({error})") from None
    return note
