"""Rebuild the markers of complete outputs from the store itself. No step needs to be known.

In:  a prefix.   Out: the counts.   Written: markers that complete outputs lack. Removed: markers whose output is gone,
or is of another attempt.

Other processes may complete and compute outputs meanwhile. So a marker is removed only after one more look at its
output, and one that was written is taken back if its output is computed again by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from marin_resources.configuration.settings import normalize_prefix
from marin_resources.storage.completion import markers as marks
from marin_resources.storage.completion import partition_markers as partitions
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.files import remove
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.walk import THREADS, Found, found_at, walk
from marin_resources.storage.paths import join
from marin_resources.types.output import Status


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    outputs: int
    """Folders with a status."""
    complete: int
    written: int
    removed: int
    unknown: tuple[str, ...]
    """Complete outputs without a marker: their record has no version, or names another place."""
    damaged: tuple[str, ...]
    """A sentence for each output with a damaged control file."""


def rebuild_marks(
    prefix: str, progress: Callable[[Iterable[Found]], Iterable[Found]] = lambda outputs: outputs
) -> Rebuilt:
    """Write and remove markers until they match the store. `progress` shows the outputs that pass through it.

    Raises UnavailableError, and OSError without the right to write.
    """
    prefix = normalize_prefix(prefix)
    before = set(_marked(prefix))
    outputs = list(progress(walk(prefix)))
    marked = {marker: entry for entry in outputs if (marker := _marker_of(entry)) is not None}
    stale = before - marked.keys()
    with ThreadPoolExecutor(THREADS) as pool:
        written = [marker for marker in marked if marker not in before]
        kept = list(pool.map(lambda marker: _write(prefix, marker, marked[marker].path), written))
        removed = sum(pool.map(lambda marker: _remove_stale(prefix, marker), stale))
    _keep_records(prefix, (marked[marker] for marker in written))
    complete = [entry for entry in outputs if entry.status is Status.SUCCESS]
    return Rebuilt(
        outputs=len(outputs),
        complete=len(complete),
        written=sum(kept),
        removed=removed,
        unknown=tuple(entry.path for entry in complete if entry.output is None),
        damaged=tuple(entry.damage for entry in outputs if entry.damage),
    )


def _marked(prefix: str) -> Iterable[str]:
    """The paths below the prefix of all markers."""
    yield from (join(marks.FOLDER, mark.file) for mark in marks.list_marks(prefix))
    yield from (join(partitions.FOLDER, file) for file in partitions.list_files(prefix))


def _marker_of(entry: Found | None) -> str | None:
    """The path below the prefix of an output's marker; None for an output that has none."""
    if entry is None or entry.output is None or entry.record is None:
        return None
    if entry.output.partition is not None:
        return join(partitions.FOLDER, partitions.file_of(entry.output, entry.record))
    mark = marks.mark_of(entry.output, entry.record)
    return join(marks.FOLDER, mark.file) if mark.fits else None


def _write(prefix: str, marker: str, path: str) -> bool:
    try:
        control.write(join(prefix, marker), b"", expected=None)
    except ConflictError:
        return False  # another process has written the same
    if _marker_of(found_at(prefix, path)) != marker:  # computed again, or removed, since it was found
        remove(join(prefix, marker))
        return False
    return True


def _remove_stale(prefix: str, marker: str) -> bool:
    """Remove a marker, unless its output is complete by now, or cannot be read."""
    entry = found_at(prefix, join(prefix, _output_path(marker)))
    if entry is not None and (entry.damage or _marker_of(entry) == marker):
        return False
    remove(join(prefix, marker))
    return True


def _output_path(marker: str) -> str:
    """The path below the prefix of a marker's output, unless its step has an override."""
    if marker.startswith(f"{partitions.FOLDER}/"):
        return partitions.output_path_in(marker.removeprefix(f"{partitions.FOLDER}/"))
    return marks.output_path_in(marker.removeprefix(f"{marks.FOLDER}/"))


def _keep_records(prefix: str, written: Iterable[Found]) -> None:
    """Pack the records that were read, so that the next plan does not read them one by one."""
    whole = [entry for entry in written if entry.output is not None and entry.output.partition is None]
    CompleteOutputs(prefix).add(
        {
            marks.mark_of(entry.output, entry.record).file: entry.record
            for entry in whole
            if entry.output and entry.record
        }
    )
