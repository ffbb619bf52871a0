"""The attempts that are at work, in one folder: what each of them reads is needed until it ends.

    <prefix>/.marin/live/<owner of the lease>.json      {"path", "owner", "attempt", "reads", "started_at"}

A writer enters its attempt after it has acquired the lease, and before it looks at its inputs for the last time. So who
withdraws an output and lists the folder afterwards knows every attempt that has found the output complete. An entry
counts for as long as its owner holds the lease; that of a killed writer is removed by who finds it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from marin_resources.storage.control import control
from marin_resources.storage.files import exists, names_in, remove
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.text import UNREADABLE
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Holder
from marin_resources.types.places import is_within, relative_to
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

FOLDER = ".marin/live"
"""Folder below the prefix."""
FORMAT_VERSION = 1
THREADS = 16

log = logging.getLogger(__name__)


class LiveAttemptError(ControlFileError):
    """An entry that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="entry of a live attempt",
    newest=FORMAT_VERSION,
    error=LiveAttemptError,
    shape={
        **dict.fromkeys(("path", "owner", "started_at"), Required(str)),
        "attempt": Required(int),
        "reads": Required([Required(str)]),
    },
)


@dataclass(frozen=True, kw_only=True)
class LiveAttempt:
    """An attempt whose writer holds the lease of its output."""

    path: str
    """Path of the output."""
    attempt: int
    reads: tuple[str, ...]
    """The paths in its config, and those of its inputs."""
    holder: Holder


def enter(prefix: str, path: str, holder: Holder, reads: Sequence[str]) -> None:
    """Enter the attempt of a writer that holds the lease. Raises UnavailableError."""
    fields = {"path": path, "owner": holder.owner, "attempt": holder.attempt, "reads": list(reads)}
    started = {"started_at": datetime.now(UTC).isoformat()}
    text = json.dumps({"format_version": FORMAT_VERSION, **fields, **started})
    control.write(_file(prefix, holder.owner), text.encode(), expected=None)


def leave(prefix: str, owner: str) -> None:
    """Remove the entry of an attempt that has ended. Without its lease it does not count, so a failure is logged."""
    _forget(_file(prefix, owner))


def live_attempts(prefix: str) -> list[LiveAttempt]:
    """The attempts at work, by one listing and two reads of each. Entries of dead writers are removed.

    Raises ControlFileError and UnavailableError.
    """
    owners = [name.removesuffix(".json") for name in names_in(join(prefix, FOLDER)) if name.endswith(".json")]
    with ThreadPoolExecutor(THREADS) as pool:
        attempts = pool.map(lambda owner: _read(prefix, owner), owners)
        return [attempt for attempt in attempts if attempt is not None]


def _read(prefix: str, owner: str) -> LiveAttempt | None:
    path = _file(prefix, owner)
    snapshot = control.read(path)
    if snapshot is None:
        return None  # it has ended
    fields = FORMAT.parse(snapshot.data, path)
    for place, its_prefix in _places(fields["path"], prefix):
        holder = lease.holder_of(place)
        if holder is not None and (holder.owner == owner or holder.owner.startswith(UNREADABLE)):
            reads = tuple(_moved(read, its_prefix, prefix) for read in fields["reads"])
            return LiveAttempt(path=place, attempt=fields["attempt"], reads=reads, holder=holder)
    _forget(path)
    return None


def _places(path: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Possible paths of the output, with the prefix as its writer has it: another machine may mount it elsewhere."""
    if is_local(path) and not is_within(path, prefix):
        parts = path.split("/")
        for first in range(1, len(parts)):
            place = join(prefix, *parts[first:])
            if exists(place):
                yield place, "/".join(parts[:first])
    yield path, prefix


def _moved(path: str, its_prefix: str, prefix: str) -> str:
    relative = relative_to(path, [its_prefix]) if its_prefix != prefix else None
    return path if relative is None else join(prefix, relative)


def _forget(path: str) -> None:
    try:
        remove(path)
    except Exception as error:  # whatever the store's client raises: without its lease the entry does not count
        log.info("the entry %s of an attempt that has ended is left (%s)", path, error)


def _file(prefix: str, owner: str) -> str:
    return join(prefix, FOLDER, f"{owner}.json")
