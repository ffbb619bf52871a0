"""Write records of hashes: the first phase of exact deduplication."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from marin_assets.documents.equal.records import RUN_RECORDS, write_records
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

if TYPE_CHECKING:
    import numpy as np

    from marin_assets.documents.equal.records import Array

HASH_BITS = 12
PARTITIONS = 1 << HASH_BITS
"""Partitions of records by hash. A range of neighbouring partitions that fits in memory is read together."""
MAX_RANK, MAX_SHARDS, MAX_ORDINAL = 1 << 8, 1 << 24, 1 << 32
"""Exclusive limits of the parts of a place, which is the number rank << 56 | shard << 32 | ordinal."""
NORMALIZATIONS = ("none", "whitespace_and_case")
Digest = Callable[[str], bytes]
Batch = tuple[Sequence[bytes], int, int, int]
"""Digests of consecutive units of a shard, with their rank, the shard, and the ordinal of the first."""


class DuplicatesError(MarinError, ValueError):
    """The config of a deduplication that cannot be used: one sentence."""


def digest_of(normalize: str) -> Digest:
    """Return the function from a text to its hash (16 bytes) after normalization "none" or "whitespace_and_case".

    Raises DuplicatesError for another name.
    """
    from xxhash import xxh3_128_digest

    require_normalization(normalize)
    if normalize == "none":
        return lambda text: xxh3_128_digest(text.encode())
    return lambda text: xxh3_128_digest(" ".join(text.split()).casefold().encode())


def require_normalization(normalize: str) -> None:
    """Raise DuplicatesError for a name that `digest_of` does not know. It loads no library."""
    if normalize not in NORMALIZATIONS:
        raise DuplicatesError(f"normalize is {normalize!r}, {expected_one_of(normalize, NORMALIZATIONS)}")


def write_hashes(path: str, batches: Iterable[Batch]) -> int:
    """Write the records of units. Return the number of units. Raises ValueError for a place beyond the limits."""
    return write_records(path, _runs(batches), PARTITIONS, hash_partition)


def _runs(batches: Iterable[Batch]) -> Iterator[Array]:
    """Yield a block for every RUN_RECORDS records, so memory is bounded."""
    hashes, places = bytearray(), array("Q")
    for digests, rank, shard, ordinal in batches:
        if rank >= MAX_RANK or shard >= MAX_SHARDS or ordinal + len(digests) > MAX_ORDINAL:
            raise ValueError(
                f"A place is (rank {rank}, shard {shard}, ordinal {ordinal}), expected less than "
                f"({MAX_RANK}, {MAX_SHARDS}, {MAX_ORDINAL}). Use fewer or smaller shards."
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
    """Return the partition of each record; u4 [records]."""
    return (block["high"] >> (64 - HASH_BITS)).astype("u4")


@cache
def hash_record() -> np.dtype[Any]:
    """Return the record of one unit: the halves of its hash, and its place."""
    import numpy as np

    return np.dtype([("high", "<u8"), ("low", "<u8"), ("place", "<u8")])
