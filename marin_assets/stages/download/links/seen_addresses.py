"""The addresses of earlier crawls and of corpora, as sets of 64-bit hashes: exact but for one pair in 10^9 at 10^5.

In:  rows with "url" (links, outcomes of a crawl, captures of an index, Common Crawl's tables of parquet), or documents
     with metadata.url.
Out: for each of their files a file of hashes, 8 bytes for an address: blocks of sorted hashes, each with a table of its
     slots, so that the task of a slot reads its own.

A task marks the links of its slot block by block: memory holds its links' hashes and one block.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marin_assets.documents import BadRow, document_files, read_rows
from marin_assets.stages.download.links.addresses import Url, canonical_url
from marin_resources.ray_tpu.shards.file_shards import FileShard, file_shards
from marin_resources.storage.files import open_atomic, open_to_read
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SLOTS = 16
"""Parts of the hashes by their first four bits: as many tasks."""
SUFFIX = ".hashes"
BLOCK_HASHES = 2**20
_TABLE = struct.Struct(f"<{SLOTS + 1}I")


class LinksError(MarinError, ValueError):
    """Links, or lists of addresses, that cannot be used: one sentence."""


@dataclass(frozen=True, kw_only=True)
class HashConfig:
    """The config of `hash_addresses`."""

    list_name: str


def hash_of(url: str) -> int:
    """The 64-bit hash of an address in its one form (xxh3)."""
    from xxhash import xxh3_64_intdigest

    return int(xxh3_64_intdigest(url.encode()))


def address_of(row: Mapping[str, Any]) -> str | None:
    """The address in a row: of "url", or of its metadata, which is JSON in parquet."""
    url, metadata = row.get("url"), row.get("metadata")
    if url is None and isinstance(metadata, str):
        with suppress(ValueError, RecursionError):
            metadata = json.loads(metadata)
    if url is None and isinstance(metadata, Mapping):
        url = metadata.get("url")
    return url if isinstance(url, str) else None


def seen_shards(lists: Mapping[str, str], hidden: str) -> list[FileShard]:
    """Return work for `hash_addresses`: the files of all lists, in the order of the names of the lists."""
    shards = []
    for name, path in sorted(lists.items()):
        files = document_files(path).shards
        outputs = [join(hidden, name, f"{number:06d}{SUFFIX}") for number in range(len(files))]
        shards += file_shards(files, outputs, config=HashConfig(list_name=name))
    return shards


def hash_addresses(shard: FileShard) -> dict[str, int]:
    """Write the hashes of one group of files. Returns seen_addresses and seen_without_address."""
    counts = {"seen_addresses": 0, "seen_without_address": 0}
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        with open_atomic(target, replace=False) as out:
            for block in _blocks(_hashes(file.path, counts)):
                out.write(block)
    if not counts["seen_addresses"] and counts["seen_without_address"]:
        raise LinksError(
            f"The list {shard.config.list_name!r} of seen has {shard.inputs[0].path!r}, of which no row has an address "
            "in 'url' or in metadata.url. Pass links, outcomes, captures, or documents with an address."
        )
    return counts


def _hashes(path: str, counts: dict[str, int]) -> Iterator[int]:
    for _, row in read_rows(path, columns=[], optional=["url", "metadata"]):
        address = None if isinstance(row, BadRow) else address_of(row)
        url = canonical_url(address) if address is not None else None
        counts["seen_addresses" if isinstance(url, Url) else "seen_without_address"] += 1
        if isinstance(url, Url):
            yield hash_of(url.url)


def _blocks(hashes: Iterable[int]) -> Iterator[bytes]:
    import numpy as np

    held: list[int] = []
    borders = np.array([slot << 60 for slot in range(1, SLOTS)], np.uint64)

    def block() -> bytes:
        array = np.unique(np.array(held, np.uint64))
        return _TABLE.pack(0, *np.searchsorted(array, borders).tolist(), len(array)) + array.astype("<u8").tobytes()

    for value in hashes:
        held.append(value)
        if len(held) == BLOCK_HASHES:
            yield block()
            held = []
    if held:
        yield block()


def hashes_of_slot(path: str, slot: int) -> Iterator[NDArray[np.uint64]]:
    """Yield the hashes of one slot, block by block. Raises LinksError for a damaged file."""
    import numpy as np

    with open_to_read(path) as file:
        while table := file.read(_TABLE.size):
            if len(table) < _TABLE.size:
                raise LinksError(f"{path!r} is cut. Remove it, and run the step again.")
            bounds, start = _TABLE.unpack(table), file.tell()
            file.seek(start + 8 * bounds[slot])
            yield np.frombuffer(file.read(8 * (bounds[slot + 1] - bounds[slot])), "<u8")
            file.seek(start + 8 * bounds[-1])


def mark_seen(hashes: NDArray[np.uint64], lists: Sequence[tuple[int, str]], slot: int) -> NDArray[np.uint16]:
    """Return for each of the ascending hashes the first of the lists that has it, counted from 1; 0 for none.

    `lists`: the number of the list, and the path of one of its files, in the order of the numbers.
    """
    import numpy as np

    marks = np.zeros(len(hashes), np.uint16)  # counts 65,535 lists
    if not len(hashes):
        return marks
    for number, path in lists:
        for seen in hashes_of_slot(path, slot):
            places = np.searchsorted(hashes, seen)
            places[places == len(hashes)] = 0
            hits = places[hashes[places] == seen]
            marks[hits[marks[hits] == 0]] = number
    return marks
