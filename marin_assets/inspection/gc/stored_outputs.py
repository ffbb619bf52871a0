"""The outputs that are complete below a prefix, and those that were collected, by markers, notes and records.

In:  a prefix.   Out: a `Stored` for each output; a partition is one of its own. It takes a few listings, and packs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from marin_resources.storage.completion.markers import Mark
from marin_resources.storage.completion.partition_markers import FOLDER as PARTITIONS
from marin_resources.storage.files import names_below
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.commit import readable_record
from marin_resources.storage.output.notes.collection import Collected, list_collected
from marin_resources.storage.output.record import identity_in
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Output, Status
from marin_resources.types.partition_key import key_of
from marin_resources.types.record import Record

THREADS = 32
NUMBERS = 3


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A complete output, according to its marker."""

    name: str
    version: str
    partition: str | None = None
    bytes: int
    finished_s: int
    """Seconds since 1970; 0 if it is not known."""
    mark: Mark | None = None
    """None for a partition, and for an output without a marker."""

    def output(self, record: Record) -> Output:
        """The output with this record."""
        identity = identity_in(record) or ""
        return Output(name=self.name, version=self.version, identity=identity, partition=self.partition)

    @property
    def whole(self) -> str:
        """The path of the version below the prefix."""
        return f"{self.name}-{self.version}"

    @property
    def relative(self) -> str:
        return Output(name=self.name, version=self.version, identity="", partition=self.partition).relative()

    @property
    def label(self) -> str:
        return self.name if self.partition is None else f"{self.name}[{self.partition}]"


class StoredOutputs:
    """The outputs of one prefix, as listed at the first query of this object; the collected ones as of its creation.

    A purge reads the notes before the attempts at work: an attempt that found an output complete, before that one was
    collected, is then among the attempts at work.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.complete = CompleteOutputs(prefix)
        self.collected: list[Collected] = list_collected(prefix)
        self.damaged: dict[str, str] = {}
        """Path below the prefix -> a sentence, of each damaged record that was met."""
        self.unknown: set[str] = set()
        """The damaged ones whose record is in no other file."""

    @cached_property
    def all(self) -> list[Stored]:
        """Every output with a marker, in no order. One that was removed by hand is among them."""
        return [*map(_of_mark, self.complete.marks), *self._partitions]

    @cached_property
    def by_path(self) -> Mapping[str, Stored]:
        return {stored.relative: stored for stored in self.all}

    @cached_property
    def partitions_of(self) -> Mapping[str, list[Stored]]:
        """Path of a version below the prefix -> its complete partitions."""
        partitions: dict[str, list[Stored]] = {}
        for stored in self._partitions:
            partitions.setdefault(stored.whole, []).append(stored)
        return partitions

    @cached_property
    def _partitions(self) -> list[Stored]:
        partitions = map(_of_done, names_below(join(self.prefix, PARTITIONS)))
        return [stored for stored in partitions if stored is not None]

    @cached_property
    def of_marks(self) -> dict[str, Record]:
        """Path -> record of every output without partitions that has a record."""
        records = self.complete.records(self.complete.marks)
        packed = {f"{mark.name}-{mark.version}": record for mark, record in records.items()}
        return {**packed, **self._read_each(path for path in map(_path_of, self.complete.marks) if path not in packed)}

    def records(self, paths: Iterable[str]) -> dict[str, Record]:
        """Path below the prefix -> record, of those that have one, complete or collected. Of a damaged record it is the
        commit object's copy.

        Raises UnavailableError.
        """
        requested = list(dict.fromkeys(paths))
        marked = {path: self.of_marks[path] for path in requested if path in self.of_marks}
        return marked | self._read_each(path for path in requested if path not in marked)

    def finished_s(self, path: str) -> float:
        """Time at which the output at this path was complete, in seconds since 1970; infinite if no marker has it."""
        stored = self.by_path.get(path)
        return stored.finished_s if stored is not None and stored.finished_s else math.inf

    def _read_each(self, paths: Iterable[str]) -> dict[str, Record]:
        requested = list(dict.fromkeys(paths))
        if is_local(self.prefix):  # threads would take longer to start
            records = list(map(self._read, requested))
        else:
            with ThreadPoolExecutor(THREADS) as pool:
                records = list(pool.map(self._read, requested))
        return {path: record for path, record in zip(requested, records, strict=True) if record is not None}

    def _read(self, path: str) -> Record | None:
        whole = path if path.startswith("/") or "://" in path else join(self.prefix, path)
        record, damage = readable_record(whole, Status.SUCCESS)
        if damage:
            self.damaged[path] = damage
        if damage and record is None:
            self.unknown.add(path)
        return record


def _path_of(mark: Mark) -> str:
    return f"{mark.name}-{mark.version}"


def _of_mark(mark: Mark) -> Stored:
    return Stored(name=mark.name, version=mark.version, bytes=mark.bytes, finished_s=mark.finished_s, mark=mark)


def _of_done(file: str) -> Stored | None:
    """The partition with this marker; None for another file."""
    whole, _, last = file.rpartition("/")
    name, dash, version = whole.rpartition("-")
    segment, *parts = last.rsplit(".", NUMBERS + 1)
    key = key_of(segment)
    if not dash or key is None or len(parts) != NUMBERS + 1 or not all(part.isdecimal() for part in parts[1:]):
        return None
    _, size, finished_s = map(int, parts[1:])
    return Stored(name=name, version=version, partition=key, bytes=size, finished_s=finished_s)
