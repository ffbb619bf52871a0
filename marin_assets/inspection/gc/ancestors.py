"""The ancestors of an output, by the records: its inputs, their inputs, and so on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from marin_assets.inspection.gc.stored_outputs import StoredOutputs
from marin_resources.types.places import relative_to
from marin_resources.types.record import Record


def made_from(relative: str, stored: StoredOutputs, prefixes: Sequence[str]) -> list[str]:
    """The paths below the prefix of all inputs of an output, or of all partitions of a version; the nearest first.

    An input without a record (raw files, an output that was removed) ends there, and so does one whose record cannot
    be read: it is in `stored.unknown` then.
    """
    reached: dict[str, None] = {}
    edge = list(_outputs_at([relative], stored))
    while edge:
        records = stored.records(edge)
        read = dict.fromkeys(path for record in records.values() for path in _inputs(record, prefixes))
        new = [path for path in read if path not in reached]
        reached |= dict.fromkeys(new)
        edge = list(_outputs_at(new, stored))
    return [path for path in reached if path != relative]


def _outputs_at(paths: Iterable[str], stored: StoredOutputs) -> Iterator[str]:
    """The outputs at these paths. One may be that of a version with partitions."""
    for path in paths:
        if path in stored.partitions_of:
            yield from (partition.relative for partition in stored.partitions_of[path])
        else:
            yield path


def _inputs(record: Record, prefixes: Sequence[str]) -> Iterator[str]:
    bases = [prefix for prefix in (record.prefix, *prefixes) if prefix]
    for path in record.dependencies:
        yield relative_to(path.rstrip("/"), bases) or path.rstrip("/")
