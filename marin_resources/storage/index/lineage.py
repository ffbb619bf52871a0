"""The lineage of an output by the records: itself and all that it was made from, each once.

In:  the path of a complete output.   Out: records by path, the output's own first. Written: nothing.

A record names the paths of its inputs. The records of one level are read together: those of many by the packs of
`storage/completion`, the others one by one, as of partitions, overrides and outputs that Marin made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from marin_resources.storage.completion.markers import Mark
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.notes.history import complete_record
from marin_resources.storage.paths import join
from marin_resources.types.places import relative_to
from marin_resources.types.record import Record

THREADS = 32
DEEP = 8
"""Levels. A lineage that is deeper is a long chain, and the records of all complete outputs are read together."""


def lineage_of(path: str, record: Record, complete: CompleteOutputs) -> dict[str, Record | None]:
    """Path -> record, of the output with this record and of all that it was made from.

    None: no record is left. Raises UnavailableError.
    """
    records: dict[str, Record | None] = {path: record}
    level, levels = dict(records), 0
    marked = {complete.path_of(mark): mark for mark in complete.marks}
    while level:
        levels += 1
        if levels == DEEP:
            complete.records(complete.marks)
        inputs = dict.fromkeys(place for reader in level.values() for place in _inputs(reader, complete.prefix))
        level = _read([place for place in inputs if place not in records], complete, marked)
        records |= level
    return records


def _inputs(record: Record | None, prefix: str) -> Iterator[str]:
    """The paths of the inputs, below today's prefix if the whole prefix was moved since."""
    if record is None:
        return
    then = (record.prefix or prefix).rstrip("/")
    for path in (dependency.rstrip("/") for dependency in record.dependencies):
        relative = relative_to(path, [then, prefix])
        yield path if relative is None else join(prefix, relative)


def _read(paths: list[str], complete: CompleteOutputs, marked: Mapping[str, Mark]) -> dict[str, Record | None]:
    marked_records = complete.records(marked[path] for path in paths if path in marked)
    records: dict[str, Record | None] = {
        path: marked_records[marked[path]] for path in paths if marked.get(path) in marked_records
    }
    remaining = [path for path in paths if path not in records]
    with ThreadPoolExecutor(THREADS) as pool:
        return records | dict(
            zip(remaining, pool.map(lambda path: complete_record(complete.prefix, path), remaining), strict=True)
        )
