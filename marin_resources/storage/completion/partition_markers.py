"""Done-markers of partitions: an empty file for each complete one, in one folder, so that one listing finds thousands.

    <prefix>/.marin/done/<name>-<version>/<key>.<digest>.<files>.<bytes>.<seconds>

The digest is the first 16 digits of the output's identity; the numbers are its size, and the time when it was complete,
in seconds since 1970. A marker is written after the status, so it may be missing for a complete output, and then the
next run that finds the output writes it. Who removes an output by hand leaves its marker: a listing does not count it,
as the folder is gone, and the next attempt removes it. It is an index for people: a run reads the status of what it
reuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.files import names_below, names_in, remove
from marin_resources.storage.paths import join
from marin_resources.types.output import Output
from marin_resources.types.partition_key import key_of, segment_of
from marin_resources.types.record import Record

FOLDER = ".marin/done"
"""Folder below the prefix."""
DIGITS = 16


@dataclass(frozen=True, kw_only=True)
class CompletionMarker:
    """A complete partition, as its marker describes it."""

    file: str = field(default="", compare=False)
    """The marker's path below the folder of markers."""
    files: int
    bytes: int
    finished_s: int
    """Seconds since 1970."""


def file_of(output: Output, record: Record) -> str:
    """The path below the folder of markers of the marker of a complete partition with this record."""
    assert output.partition is not None
    size = record.manifest
    finished_s = int(datetime.fromisoformat(record.finished_at).timestamp()) if record.finished_at else 0
    parts = (output.identity[:DIGITS], size.files or 0, size.bytes or 0, finished_s)
    name = ".".join(map(str, (segment_of(output.partition), *parts)))
    return join(f"{output.name}-{output.version}", name)


def mark_done(prefix: str, output: Output, record: Record) -> None:
    """Write the marker of a complete partition with this record. Raises UnavailableError."""
    try:
        control.write(join(prefix, FOLDER, file_of(output, record)), b"", expected=None)
    except ConflictError:
        return  # another run has written the same


def remove_marks(prefix: str, output: Output) -> int | None:
    """Remove the markers of a partition that is computed now, if it was complete before and was removed by hand.

    Return the time when it was complete, in seconds since 1970; None if this very version has no marker.
    """
    assert output.partition is not None
    folder, segment, seconds = _folder(prefix, output), segment_of(output.partition), []
    for name in names_in(folder, f"{segment}."):
        if _segment_in(name) == segment:
            digest, *_, finished_s = name.rsplit(".", 4)[1:]
            if digest == output.identity[:DIGITS]:
                seconds.append(int(finished_s))
            remove(join(folder, name))
    return max(seconds, default=None)


def marked_partitions(prefix: str, whole: Output) -> dict[str, CompletionMarker]:
    """The partitions of the version `whole` that have a marker of their identity, by key."""
    marked, folder = {}, f"{whole.name}-{whole.version}"
    for name in names_in(_folder(prefix, whole)):
        segment, *parts = name.rsplit(".", 4)
        key = key_of(segment)
        if key is None or segment != _segment_in(name):
            continue  # not ours
        if whole.at(key).identity[:DIGITS] == parts[0]:
            files, size, finished_s = map(int, parts[1:])
            marked[key] = CompletionMarker(file=join(folder, name), files=files, bytes=size, finished_s=finished_s)
    return marked


def list_files(prefix: str, below: str = "") -> list[str]:
    """The markers of all partitions below the prefix: their paths below the folder of markers, by one listing. `below`:
    those in this folder of it alone, such as "evaluation" or "evaluation/nano-1a2b3c"."""
    folder = f"{below}/" if below else ""
    files = (f"{folder}{file}" for file in names_below(join(prefix, FOLDER, below) if below else join(prefix, FOLDER)))
    return [file for file in files if _segment_in(file.rpartition("/")[2]) is not None]


def output_path_in(file: str) -> str:
    """The path below the prefix of the partition whose marker this is, unless its step has an override."""
    return file.rsplit(".", 4)[0]


def _segment_in(name: str) -> str | None:
    """The segment of the key in the name of a marker; None for another file."""
    segment, *parts = name.rsplit(".", 4)
    return segment if len(parts) == 4 and all(part.isdecimal() for part in parts[1:]) else None


def _folder(prefix: str, output: Output) -> str:
    return join(prefix, FOLDER, f"{output.name}-{output.version}")
