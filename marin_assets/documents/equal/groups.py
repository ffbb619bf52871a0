"""Group equal hashes: the second phase of exact deduplication."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from marin_assets.documents.equal.hashes import MAX_ORDINAL, MAX_SHARDS, PARTITIONS, hash_partition, hash_record
from marin_assets.documents.equal.records import RecordsError, in_runs, listed_records, read_records, write_records
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts
from marin_resources.storage.files import read_json

if TYPE_CHECKING:
    import numpy as np

    from marin_assets.documents.equal.records import Array

RANGE_RECORDS = 1_000_000
"""Different units in a range: 140 MB while they are sorted. 4 million would take four times that and be no faster."""


@dataclass(frozen=True, kw_only=True)
class RangeConfig:
    """The config of the second phase: partitions first .. end - 1 of the records."""

    first: int
    end: int


@cache
def copy_record() -> np.dtype[Any]:
    """Return the record of one unit that has an equal."""
    import numpy as np

    return np.dtype([("shard", "<u4"), ("ordinal", "<u4"), ("copies", "<u4"), ("kept", "u1")])


def group_range(shard: FileShard) -> Counts:
    """The second phase, for one range of hashes. Returns groups, of two or more equal units. Raises RecordsError."""
    import numpy as np

    listing = read_json(shard.inputs[0].path)
    files = listed_records(shard.inputs[0].path, listing)
    firsts, config = np.array(listing["firsts"]), shard.config

    def blocks() -> Iterator[Array]:
        for file in files:
            for block in read_records(file, hash_record(), config.first, config.end, PARTITIONS):
                where = hash_partition(block)
                if where.min() < config.first or where.max() >= config.end:
                    raise RecordsError(
                        f"{file.path!r} has hashes in wrong partitions. Remove it and run the step again."
                    )
                yield block

    groups = _Groups(blocks())
    write_records(
        shard.outputs[0],
        in_runs(groups.copies(block) for block in blocks()),
        len(firsts),
        lambda block: np.searchsorted(firsts, block["shard"], side="right") - 1,
    )
    return {"groups": len(groups)}


class _Groups:
    """The hashes that more than one unit has, each with the smallest place and the number of its units."""

    def __init__(self, blocks: Iterator[Array]) -> None:
        import numpy as np

        table = _Table.of(np.empty(0, hash_record()))
        for block in in_runs(blocks, RANGE_RECORDS):
            table = table.merged(_Table.of(block))
        several = table.copies > 1
        self._high, self._low = table.high[several], table.low[several]
        self._place, self._copies = table.place[several], table.copies[several]

    def __len__(self) -> int:
        return len(self._high)

    def copies(self, block: Array) -> Array:
        """Return the records of the units of `block` that have an equal."""
        import numpy as np

        groups_of_units = np.full(len(block), -1)
        at = np.searchsorted(self._high, block["high"])
        searching = np.flatnonzero(at < len(self._high))
        while len(searching):  # a second turn only where different hashes share their first 64 bits
            position = at[searching]
            same_high = self._high[position] == block["high"][searching]
            same = same_high & (self._low[position] == block["low"][searching])
            groups_of_units[searching[same]] = position[same]
            searching = searching[same_high & ~same & (position + 1 < len(self._high))]
            at[searching] += 1
        units, groups = block["place"][groups_of_units >= 0], groups_of_units[groups_of_units >= 0]
        copies = np.empty(len(units), copy_record())
        copies["shard"], copies["ordinal"] = (units >> 32) & (MAX_SHARDS - 1), units & (MAX_ORDINAL - 1)
        copies["copies"], copies["kept"] = self._copies[groups], units == self._place[groups]
        return copies


@dataclass(frozen=True)
class _Table:
    """Different hashes in order, each with the smallest place and the number of its units. All of shape [hashes]."""

    high: Array
    low: Array
    place: Array
    copies: Array

    @staticmethod
    def of(block: Array) -> _Table:
        import numpy as np

        return _Table._reduced(block["high"], block["low"], block["place"], np.ones(len(block), "u8"))

    def merged(self, other: _Table) -> _Table:
        import numpy as np

        fields = ("high", "low", "place", "copies")
        return _Table._reduced(*(np.concatenate([getattr(self, f), getattr(other, f)]) for f in fields))

    @staticmethod
    def _reduced(high: Array, low: Array, place: Array, copies: Array) -> _Table:
        import numpy as np

        if not len(high):
            return _Table(high, low, place, copies)
        order = np.lexsort((low, high))
        high, low = high[order], low[order]
        new = np.flatnonzero(np.r_[True, (high[1:] != high[:-1]) | (low[1:] != low[:-1])])
        smallest = np.minimum.reduceat(place[order], new)
        return _Table(high[new], low[new], smallest, np.add.reduceat(copies[order], new))
