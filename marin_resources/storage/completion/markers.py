"""Done-markers of outputs: an empty file for each complete one, in one folder, so that one listing finds thousands.

    <prefix>/.marin/complete/<name>-<version>.<digest>.<attempt>.<files>.<bytes>.<seconds>

The digest is the first 16 digits of the output's identity; the numbers are the attempt that completed it, its size, and
the time, in seconds since 1970. A marker is written after the status, so it may be missing for a complete output; the
next plan that finds the output writes it. Who removes an output by hand leaves its marker: a plan does not count it, as
the folder is gone, and the next attempt removes it. Partitions have markers of their own (`partition_markers.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.files import names_below, names_in, remove
from marin_resources.storage.paths import join
from marin_resources.types.output import Output
from marin_resources.types.record import Record

FOLDER = ".marin/complete"
"""Folder below the prefix."""
DIGITS = 16
NUMBERS = 4
MAX_NAME_BYTES = 200
"""Limit for the last part of a step's name: a file system takes 255 for a name. An output with a longer one has no
marker, and a plan looks at it by itself."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A complete output, as its marker describes it."""

    name: str
    version: str
    digest: str
    """Digest of the output's identity."""
    attempt: int
    files: int
    bytes: int
    finished_s: int
    """Seconds since 1970; 0 if its record has no time."""

    @property
    def file(self) -> str:
        """The marker's path below the folder of markers. It is never the same for two outputs, or two attempts."""
        parts = (self.digest, self.attempt, self.files, self.bytes, self.finished_s)
        return ".".join(map(str, (f"{self.name}-{self.version}", *parts)))

    @property
    def fits(self) -> bool:
        """Whether its file can have this name."""
        return len(self.name.rpartition("/")[2].encode()) <= MAX_NAME_BYTES

    def is_of(self, output: Output) -> bool:
        """Whether it is of this very version: six digits can collide."""
        return self.digest == output.identity[:DIGITS]


def mark_of(output: Output, record: Record) -> Mark:
    """The marker of a complete output with this record."""
    size = record.manifest
    return Mark(
        name=output.name,
        version=output.version,
        digest=output.identity[:DIGITS],
        attempt=record.attempt or 0,
        files=size.files or 0,
        bytes=size.bytes or 0,
        finished_s=seconds_of(record),
    )


def seconds_of(record: Record) -> int:
    """The time when the output of this record was complete, in seconds since 1970; 0 if the record has none."""
    finished_at = record.finished_at
    return int(datetime.fromisoformat(finished_at).timestamp()) if finished_at else 0


def write_mark(prefix: str, mark: Mark) -> None:
    """Write the marker, if the name is not too long for one. Raises UnavailableError."""
    if not mark.fits:
        return
    try:
        control.write(join(prefix, FOLDER, mark.file), b"", expected=None)
    except ConflictError:
        return  # another process has written the same


def remove_marks(prefix: str, output: Output) -> int | None:
    """Remove the markers of an output that is computed now, if it was complete before, or that is taken back.

    Return the time when it was complete, in seconds since 1970; None if this very version has no marker.
    """
    folder, _, last = f"{output.name}-{output.version}".rpartition("/")
    place, seconds = join(prefix, FOLDER, folder) if folder else join(prefix, FOLDER), []
    for name in names_in(place, f"{last}."):
        mark = _parse(f"{folder}/{name}" if folder else name)
        if mark is not None and mark.is_of(output):
            seconds.append(mark.finished_s)
        remove(join(place, name))
    return max(seconds, default=None)


def list_marks(prefix: str, segment: str = "") -> list[Mark]:
    """Every marker below the prefix, by one listing, in no order. `segment`: of the steps whose name begins with it and
    a slash alone."""
    files = names_below(join(prefix, FOLDER, segment) if segment else join(prefix, FOLDER))
    parsed = (_parse(f"{segment}/{file}" if segment else file) for file in files)
    return [mark for mark in parsed if mark is not None]


def marks_of(prefix: str, name: str) -> list[Mark]:
    """The markers of all versions of an output, the last one that was complete first."""
    folder, _, last = name.rpartition("/")
    place = join(prefix, FOLDER, folder) if folder else join(prefix, FOLDER)
    parsed = (_parse(f"{folder}/{file}" if folder else file) for file in names_in(place, f"{last}-"))
    return sorted(
        (mark for mark in parsed if mark is not None and mark.name == name), key=lambda mark: -mark.finished_s
    )


def output_path_in(file: str) -> str:
    """The path below the prefix of the output whose marker this is, unless its step has an override."""
    return file.rsplit(".", NUMBERS + 1)[0]


def _parse(file: str) -> Mark | None:
    """The marker with this path; None for another file."""
    path, *parts = file.rsplit(".", NUMBERS + 1)
    name, dash, version = path.rpartition("-")
    if not dash or len(parts) != NUMBERS + 1 or not all(part.isdecimal() for part in parts[1:]):
        return None
    attempt, files, size, finished_s = map(int, parts[1:])
    return Mark(
        name=name,
        version=version,
        digest=parts[0],
        attempt=attempt,
        files=files,
        bytes=size,
        finished_s=finished_s,
    )
