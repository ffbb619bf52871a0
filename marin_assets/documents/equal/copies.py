"""Find equal texts in a corpus and choose the one that is kept: three phases over shards.

1. A function of the stage hashes the units (documents, paragraphs) of each group of shards to records of 24 bytes:
   128 bits of xxh3 and the unit's place. Record files are partitioned by the first bits of the hash.
2. `group_range` finds, in each range of hashes, the equal units and the one with the smallest place. For each unit that
   has an equal it writes the place, the number of copies and whether it is kept, partitioned by the unit's group of
   shards.
3. A function of the stage reads the shards again and writes their attributes.

A place is (rank, shard, ordinal): the rank of the unit's source, the shard's number in the documents' order, the unit's
number in its shard. So the choice depends on the documents' order alone, not on groups, cores or ids. Memory is that of
one range of hashes, RANGE_RECORDS different units, even if one unit makes up half of the corpus. Between phases the
driver lists files and writes their list; nothing else is sequential.

The files are stored in `<output>/.marin/exact/` and removed at the end. At 10^10 units the probability that two
different ones have the same hash is 1.5e-19.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from marin_assets.documents.equal.groups import RANGE_RECORDS, RangeConfig, copy_record, group_range
from marin_assets.documents.equal.hashes import PARTITIONS
from marin_assets.documents.equal.records import listed_records, read_records, record_listing, record_name
from marin_assets.documents.shards import DocumentFiles, document_files, document_shards
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import StoredFile, exists, read_json, remove_folder, stored_files, write_json
from marin_resources.storage.paths import join

if TYPE_CHECKING:
    from marin_assets.documents.equal.records import Array

FOLDER = ".marin/exact"
MIN_RANGES = 16
"""A small corpus is divided into this many ranges, for parallel work."""


@dataclass(frozen=True, kw_only=True)
class HashConfig:
    """The config of the first phase."""

    config: Any
    """The stage's config."""
    first_shard: int
    """Number of the group's first shard in the documents' order."""


@dataclass(frozen=True, kw_only=True)
class DecideConfig:
    """The config of the third phase."""

    config: Any
    """The stage's config."""
    first_shard: int
    """Number of the group's first shard in the documents' order."""
    group: int
    """Number of the group of shards."""
    groups: int
    copies: StoredFile
    """The list of the second phase's files."""


def decide_copies(
    documents: str | DocumentFiles,
    output_path: str,
    config: Any,
    *,
    hash_units: Callable[[FileShard], Counts],
    decide_units: Callable[[FileShard], Counts],
) -> Counts:
    """Run the three phases; the last one writes below `output_path`. Returns the counts of all phases.

    `documents` is a folder, or the files that the stage listed in it.
    """
    documents = document_files(documents) if isinstance(documents, str) else documents
    to_decide = document_shards(documents, output_path, config)
    firsts = [0, *accumulate(len(group.inputs) for group in to_decide)][:-1]
    hashed = [
        FileShard(
            inputs=group.inputs,
            outputs=(_hidden(output_path, "records", i),),
            config=HashConfig(config=config, first_shard=first),
        )
        for i, (group, first) in enumerate(zip(to_decide, firsts, strict=True))
    ]
    counts = map_shards(hash_units, hashed, output_path=output_path)
    records = _listed(output_path, "records", hashed, {"firsts": firsts})
    ranges = _ranges(output_path, records, int(counts.pop("units")))
    counts |= map_shards(group_range, ranges, output_path=output_path)
    copies = _listed(output_path, "copies", ranges, {})
    configs = [
        DecideConfig(config=config, first_shard=first, group=i, groups=len(firsts), copies=copies)
        for i, first in enumerate(firsts)
    ]
    to_decide = [dataclasses.replace(group, config=own) for group, own in zip(to_decide, configs, strict=True)]
    counts |= map_shards(decide_units, to_decide, output_path=output_path)
    remove_folder(join(output_path, FOLDER))
    return {**counts, **documents.counts}


def _ranges(output_path: str, records: StoredFile, units: int) -> list[FileShard]:
    number = min(PARTITIONS, max(MIN_RANGES, -(-units // RANGE_RECORDS)))
    bounds = [PARTITIONS * i // number for i in range(number + 1)]
    return [
        FileShard(
            inputs=(records,),
            outputs=(_hidden(output_path, "copies", i),),
            config=RangeConfig(first=bounds[i], end=bounds[i + 1]),
        )
        for i in range(number)
    ]


def _listed(output_path: str, kind: str, shards: Sequence[FileShard], more: Mapping[str, Any]) -> StoredFile:
    """Write the list of a phase's files, for the workers of the next phase, and return the list's file.

    It is written again only if a file or `more` changed: its stamp is part of the next phase's key.
    """
    path = join(output_path, FOLDER, f"{kind}.json")
    stored = {file.name: file for file in stored_files(join(output_path, FOLDER, kind))}
    listing = {**record_listing([stored[shard.outputs[0].rpartition("/")[2]] for shard in shards]), **more}
    if not exists(path) or read_json(path) != listing:
        write_json(path, listing)
    return stored_files(path)[0]


def _hidden(output_path: str, kind: str, index: int) -> str:
    return join(output_path, FOLDER, kind, record_name(index))


class Copies:
    """The second phase's results for the units of one group of shards: 5 bytes a unit."""

    def __init__(self, config: DecideConfig) -> None:
        self._found: dict[int, tuple[Array, Array]] = {}
        for file in listed_records(config.copies.path, read_json(config.copies.path)):
            for block in read_records(file, copy_record(), config.group, config.group + 1, config.groups):
                self._add(block)

    def of(self, shard: int, ordinal: int) -> tuple[int, bool]:
        """Return the number of copies of this unit in the corpus, and whether this one is kept."""
        own = self._found.get(shard)
        if own is None or ordinal >= len(own[0]):
            return 1, True
        return int(own[0][ordinal]), not own[1][ordinal]

    def rejected(self, shard: int, first: int, units: int) -> list[bool]:
        """Return whether each of `units` units from `first` on is rejected. The list is shorter if the rest is kept."""
        own = self._found.get(shard)
        return [] if own is None else own[1][first : first + units].tolist()

    def _add(self, block: Array) -> None:
        import numpy as np

        for shard in np.unique(block["shard"]).tolist():
            own = block[block["shard"] == shard]
            units = int(own["ordinal"].max()) + 1
            copies, rejected = self._found.get(shard, (np.ones(0, "u4"), np.zeros(0, bool)))
            if units > len(copies):
                more = max(units, 2 * len(copies)) - len(copies)
                copies = np.concatenate([copies, np.ones(more, "u4")])
                rejected = np.concatenate([rejected, np.zeros(more, bool)])
            copies[own["ordinal"]], rejected[own["ordinal"]] = own["copies"], own["kept"] == 0
            self._found[shard] = (copies, rejected)
