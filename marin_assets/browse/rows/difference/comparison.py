"""Compare two inventories: the ids that are added, removed, in both and the same, or changed; and where their rows are.

In:  the inventories of all rows of two outputs.   Out: counts, and for each changed id the place of a row on each side.

An id that several rows of an output have is compared as one: by the sets of its texts, verdicts and other values on the
two sides. So neither the order of rows nor their number changes a result, and repeated ids are counted by themselves.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import groupby

from marin_assets.browse.rows.difference.digests import DIGEST_BYTES, ID_BYTES
from marin_assets.browse.rows.difference.inventory import CONTENT_BYTES, PLACE, RECORD_BYTES, Inventory

ADDED, REMOVED, TEXT, VERDICT, VALUES = "added", "removed", "text", "verdict", "values"
KINDS = (TEXT, VERDICT, VALUES, ADDED, REMOVED)
CHANGES = (TEXT, VERDICT, VALUES)
"""Kinds of changes of an id in both outputs, in the order of their digests. An id may have several."""
PAIR = struct.Struct(">IIII")
"""File and row before, file and row after."""
NONE = (0xFFFFFFFF, 0xFFFFFFFF)
"""The place of a row that does not exist."""

Place = tuple[int, int]
Record = bytes


class Comparison:
    """The difference of two outputs, from `before` to `after`."""

    def __init__(self, before: Inventory, after: Inventory) -> None:
        self.before, self.after = before, after
        self.bucket = 0
        """The bucket that is compared next."""
        self.in_both = self.changed = 0
        """Ids that both outputs have; those of them that differ in any way."""
        self.repeated = {False: 0, True: 0}
        """Ids that several rows before, and after, have."""
        self.repeats = {False: 0, True: 0}
        """Rows beyond the first of these ids."""
        self.lock = threading.Lock()
        """Held by the request that continues it."""
        self._pairs: dict[str, bytearray] = {kind: bytearray() for kind in KINDS}

    @property
    def kept(self) -> int:
        """Buckets that are compared, of BUCKETS."""
        return min(self.before.kept, self.after.kept)

    @property
    def is_finished(self) -> bool:
        return self.bucket > self.kept

    @property
    def progress(self) -> tuple[int, int, int]:
        """Rows that were read before and after, and buckets that were compared."""
        return self.before.rows, self.after.rows, self.bucket

    @property
    def bytes(self) -> int:
        return sum(map(len, self._pairs.values()))

    def advance(self, end_s: float) -> None:
        """Read and compare, until all is done or the monotonic clock shows `end_s`. Raises LimitError."""
        for inventory in (self.before, self.after):
            inventory.advance(end_s)
            if not inventory.is_finished:
                return
        while self.bucket < self.kept:
            self._compare(self.bucket)
            self.bucket += 1
            if time.monotonic() > end_s:
                return
        if self.is_finished:
            return
        for kind, pairs in self._pairs.items():
            self._pairs[kind] = bytearray().join(sorted(_slices(pairs, PAIR.size)))
        self.bucket += 1

    def count(self, kind: str) -> int:
        """The number of ids of a kind."""
        return len(self._pairs[kind]) // PAIR.size

    def pairs(self, kind: str, start: int, count: int) -> list[tuple[Place | None, Place | None]]:
        """The places before and after of ids of a kind, from `start` on, in the order of the rows before."""
        data = self._pairs[kind][start * PAIR.size : (start + count) * PAIR.size]
        return [
            (None if numbers[:2] == NONE else numbers[:2], None if numbers[2:] == NONE else numbers[2:])
            for numbers in PAIR.iter_unpack(bytes(data))
        ]

    def _compare(self, bucket: int) -> None:
        before, after = (_ids(inventory.buckets[bucket]) for inventory in (self.before, self.after))
        old, new = next(before, None), next(after, None)
        while old is not None or new is not None:
            if new is None or (old is not None and old[0] < new[0]):
                self._add(REMOVED, old[1] if old is not None else (), ())
                old = next(before, None)
            elif old is None or new[0] < old[0]:
                self._add(ADDED, (), new[1])
                new = next(after, None)
            else:
                self._add_both(old[1], new[1])
                old, new = next(before, None), next(after, None)

    def _add_both(self, old: Sequence[Record], new: Sequence[Record]) -> None:
        self.in_both += 1
        if len(old) == len(new) == 1:
            contents = ({_content(old[0])}, {_content(new[0])})
        else:
            contents = ({_content(record) for record in old}, {_content(record) for record in new})
        kinds = [] if contents[0] == contents[1] else _kinds(*contents)
        self.changed += bool(kinds)
        if not kinds:
            self._count_repeats(old, new)
            return
        first = next((record for record in old if _content(record) not in contents[1]), old[0])
        second = next((record for record in new if _content(record) not in contents[0]), new[0])
        for kind in kinds:
            self._pairs[kind] += PAIR.pack(*_place(first), *_place(second))
        self._count_repeats(old, new)

    def _add(self, kind: str, old: Sequence[Record], new: Sequence[Record]) -> None:
        places = (_place(side[0]) if side else NONE for side in (old, new))
        self._pairs[kind] += PAIR.pack(*next(places), *next(places))
        self._count_repeats(old, new)

    def _count_repeats(self, old: Sequence[Record], new: Sequence[Record]) -> None:
        for is_after, records in ((False, old), (True, new)):
            if len(records) > 1:
                self.repeated[is_after] += 1
                self.repeats[is_after] += len(records) - 1


def _kinds(old: set[bytes], new: set[bytes]) -> list[str]:
    """The kinds of changes between the contents of an id; VALUES if only their combinations differ."""
    kinds = []
    for index, kind in enumerate(CHANGES):
        part = slice(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES)
        if {content[part] for content in old} != {content[part] for content in new}:
            kinds.append(kind)
    return kinds or [VALUES]


def _ids(bucket: bytearray) -> Iterator[tuple[bytes, list[Record]]]:
    """The digest of each id with its records, in order."""
    records = sorted(_slices(bucket, RECORD_BYTES))
    for id, group in groupby(records, key=lambda record: record[:ID_BYTES]):
        yield id, list(group)


def _slices(data: bytearray, size: int) -> list[bytes]:
    whole = bytes(data)
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _content(record: Record) -> bytes:
    return record[ID_BYTES : ID_BYTES + CONTENT_BYTES]


def _place(record: Record) -> Place:
    file, row = PLACE.unpack_from(record, ID_BYTES + CONTENT_BYTES)
    return file, row
