"""Records of hashes: what the first phase of exact deduplication writes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from marin_assets.stages.dedup.exact_records import RUN_RECORDS, write_records

if TYPE_CHECKING:
    import numpy as np

    from marin_assets.stages.dedup.exact_records import Array

HASH_BITS = 12
PARTITIONS = 1 << HASH_BITS
"""Of records by hash. Neighbours are read together, as many as memory holds."""
MAX_RANK, MAX_SHARDS, MAX_ORDINAL = 1 << 8, 1 << 24, 1 << 32
"""Of a place, which is the number rank << 56 | shard << 32 | ordinal."""
Digest = Callable[[str], bytes]
Batch = tuple[Sequence[bytes], int, int, int]
"""Digests of units that follow each other in a shard; their rank, the shard, the ordinal of the first."""


def digest_of(normalize: str) -> Digest:
    """The hash of a text, by the name of how it is normalized before. Raises ValueError for another name."""
    from xxhash import xxh3_128_digest

    if normalize == "none":
        return lambda text: xxh3_128_digest(text.encode())
    if normalize == "whitespace_and_case":
        return lambda text: xxh3_128_digest(" ".join(text.split()).casefold().encode())
    raise ValueError(f"normalize is {normalize!r}, expected 'none' or 'whitespace_and_case'.")


def write_hashes(path: str, batches: Iterable[Batch]) -> int:
    """Write the records of units; returns how many."""
    return write_records(path, _runs(batches), PARTITIONS, hash_partition)


def _runs(batches: Iterable[Batch]) -> Iterator[Array]:
    """Records, as soon as there are RUN_RECORDS of them: memory is flat."""
    hashes, places = bytearray(), array("Q")
    for digests, rank, shard, ordinal in batches:
        if rank >= MAX_RANK or shard >= MAX_SHARDS or ordinal + len(digests) > MAX_ORDINAL:
            raise ValueError(
                f"A place (rank {rank}, shard {shard}, ordinal {ordinal}) is beyond what records hold, less than "
                f"({MAX_RANK}, {MAX_SHARDS}, {MAX_ORDINAL}). Make fewer or smaller shards."
            )
        place = rank << 56 | shard << 32 | ordinal
        hashes += b"".join(digests)
        places.extend(range(place, place + len(digests)))
        if len(places) >= RUN_RECORDS:
            yield _block(hashes, places)
            hashes, places = bytearray(), array("Q")
    yield _block(hashes, places)


def _block(hashes: bytearray, places: array[int]) -> Array:
    import numpy as np

    block = np.empty(len(places), hash_record())
    halves = np.frombuffer(hashes, ">u8").reshape(-1, 2)
    block["high"], block["low"], block["place"] = halves[:, 0], halves[:, 1], np.array(places, "u8")
    return block


def hash_partition(block: Array) -> Array:
    return (block["high"] >> (64 - HASH_BITS)).astype("u4")


@cache
def hash_record() -> np.dtype[Any]:
    import numpy as np

    return np.dtype([("high", "<u8"), ("low", "<u8"), ("place", "<u8")])
