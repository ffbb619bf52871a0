"""A set of millions of strings as sorted 64-bit hashes (xxh3): 8 bytes an entry, where Python's set takes 120.

Another string is taken for an entry with the probability (entries / 2^64): with 5 million entries, once in 4 * 10^12
lookups. The hashes are the same on every machine, so results are too.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

BUCKET_BITS = 16
"""The first bits of a hash choose the part of the array to search: 70 of 4.6 million hashes."""


class HashedSet:
    """Supports `in` and `len`."""

    def __init__(self, entries: Iterable[Iterable[bytes]]) -> None:
        """Add the entries of all parts, in UTF-8. Equal entries count once for each time."""
        import numpy as np
        import xxhash

        self._hash = xxhash.xxh3_64_intdigest
        self._hashes = array("Q")
        for part in entries:
            self._hashes.extend(map(self._hash, part))
        view = np.frombuffer(self._hashes, dtype=np.uint64)
        view.sort()
        firsts = np.arange(1 << BUCKET_BITS, dtype=np.uint64) << np.uint64(64 - BUCKET_BITS)
        self._starts = array("Q", view.searchsorted(firsts).astype(np.uint64).tobytes())
        self._starts.append(len(self._hashes))

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, entry: str) -> bool:
        hashed = self._hash(entry.encode("utf-8", "surrogatepass"))
        bucket = hashed >> (64 - BUCKET_BITS)
        end = self._starts[bucket + 1]
        at = bisect_left(self._hashes, hashed, self._starts[bucket], end)
        return at < end and self._hashes[at] == hashed
