"""Done-markers of partitions: an empty file for each complete one, in one folder, so that one listing finds thousands.

    <prefix>/.marin/done/<name>-<version>/<key>.<digest>     the first 16 digits of the output's identity

A marker is written after the status, so it may be missing for a complete output, and then it is written by the next run
that finds the output. It is an index for people who ask what is there. A run that reuses an output reads its status.
"""

from __future__ import annotations

from marin_resources.output import Output
from marin_resources.partition_key import key_of, segment_of
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.files import names_in
from marin_resources.storage.paths import join

FOLDER = ".marin/done"
"""Below the prefix."""
DIGITS = 16


def mark_done(prefix: str, output: Output) -> None:
    """Write the marker of a complete partition. Raises UnavailableError."""
    assert output.partition is not None
    name = f"{segment_of(output.partition)}.{output.identity[:DIGITS]}"
    try:
        control.write(join(_folder(prefix, output), name), b"", expected=None)
    except ConflictError:
        return  # another run has written the same


def marked_partitions(prefix: str, whole: Output) -> set[str]:
    """The keys of the version `whole` that have a marker of its identity."""
    found = set()
    for name in names_in(_folder(prefix, whole)):
        segment, _, digest = name.rpartition(".")
        key = key_of(segment)
        if key is not None and whole.at(key).identity[:DIGITS] == digest:
            found.add(key)
    return found


def _folder(prefix: str, output: Output) -> str:
    return join(prefix, FOLDER, f"{output.name}-{output.version}")
