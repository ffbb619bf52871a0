"""The states of thousands of outputs by few requests: from their markers and the listings of folders.

In:  outputs without partitions.   Out: their states.   Written: the markers that complete outputs lack.

An output with a marker and a folder is complete; without a folder it was never begun. One with a folder and no marker
is read file by file: it failed, is being computed, or was completed by Marin, whose buckets have no markers.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from marin_resources.storage.completion.markers import mark_of, write_mark
from marin_resources.storage.completion.partition_markers import CompletionMarker
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.files import folders_in
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import is_local
from marin_resources.types.output import Match, Observed, Output, Status

THREADS = 32

log = logging.getLogger(__name__)


def look_in_bulk(store: Store, outputs: Iterable[Output], complete: CompleteOutputs) -> dict[Output, Observed]:
    """The state of each output. For a complete one it is that of its marker and its record, and the run reads more.

    Raises UnavailableError.
    """
    requested = list(dict.fromkeys(outputs))
    folders = existing({place for output in requested for place in store.places(output)})
    states: dict[Output, Observed] = {}
    marked = {}
    for output in requested:
        path = store.locate(output)
        mark = complete.mark_of(output)
        if path in folders and mark is not None and mark.is_of(output):
            marked[output] = mark
        elif folders.isdisjoint(store.places(output)):
            states[output] = Observed(path=path, listed=True)
    records = complete.records(marked.values(), {mark: store.locate(output) for output, mark in marked.items()})
    for output, mark in marked.items():
        if mark in records:
            states[output] = Observed(
                path=store.locate(output), status=Status.SUCCESS, record=records[mark], listed=True
            )
    read = store.look(output for output in requested if output not in states)
    mark_complete(store, complete, read)
    return {**states, **read}


def look_at_partitions(
    store: Store, keys: Mapping[Output, Collection[str]], complete: CompleteOutputs
) -> dict[Output, Observed]:
    """The states of these partitions, by version, that are complete, or were never begun. One whose record cannot be
    read is left out."""
    observed: dict[Output, Observed] = {}
    marked: dict[str, tuple[Output, CompletionMarker]] = {}
    for whole, requested in keys.items():
        stored = frozenset(store.partitions(whole))
        done = store.done_partitions(whole, stored)
        for key in requested:
            output = whole.at(key)
            if key in done:
                marked[store.locate(output)] = output, done[key]
            elif key not in stored:
                observed[output] = Observed(path=store.locate(output), listed=True)
    records = complete.records_of_partitions({path: marker for path, (_, marker) in marked.items()})
    for path, record in records.items():
        observed[marked[path][0]] = Observed(path=path, status=Status.SUCCESS, record=record, listed=True)
    return observed


def mark_complete(store: Store, complete: CompleteOutputs, read: Mapping[Output, Observed]) -> None:
    """Write the markers that complete outputs lack, of those whose files were read, and keep their records.

    Marin's outputs have none, nor have those of an earlier version of this software. Without the right to write,
    and with a `complete` that does not write, nothing is written.
    """
    done = {output: seen for output, seen in read.items() if seen.done and seen.match is Match.SAME}
    lacking = {output: seen.record for output, seen in done.items() if not _is_marked(complete, output)}
    if not lacking or not complete.writes:
        return
    new = {output: mark_of(output, record) for output, record in lacking.items()}
    first, *others = new.values()
    try:
        write_mark(store.prefix, first)  # by itself: where this is refused, the others are too
        if is_local(store.prefix):
            for mark in others:
                write_mark(store.prefix, mark)
        else:
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(lambda mark: write_mark(store.prefix, mark), others))
    except (OSError, UnavailableError) as error:
        log.info("markers could not be written below %s: %s", store.prefix, error)
        return
    complete.add({mark.file: lacking[output] for output, mark in new.items()})


def _is_marked(complete: CompleteOutputs, output: Output) -> bool:
    mark = complete.mark_of(output)
    return output.partition is not None or (mark is not None and mark.is_of(output))


def existing(paths: Collection[str]) -> frozenset[str]:
    """The paths that are folders, by one listing of each folder that holds some of them."""
    parents = sorted({_split(path)[0] for path in paths})
    if all(map(is_local, parents)):  # threads would take longer to start
        listed = list(map(folders_in, parents))
    else:
        with ThreadPoolExecutor(THREADS) as pool:
            listed = list(pool.map(folders_in, parents))
    entries = {(parent, name) for parent, names in zip(parents, listed, strict=True) for name in names}
    return frozenset(path for path in paths if _split(path) in entries)


def _split(path: str) -> tuple[str, str]:
    parent, _, name = path.rstrip("/").rpartition("/")
    return parent, name
