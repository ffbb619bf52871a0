"""MinHash signatures (Broder 1997) and their bands, by which near-duplicates are found.

A signature holds, for each of bands x rows permutations, the smallest permuted hash of the document's shingles. Two
documents agree in one permutation with a probability of their Jaccard similarity s, in all rows of a band with s^rows,
and in at least one band with 1 - (1 - s^rows)^bands.

A permutation is h -> a*h + b modulo 2^32 with an odd a. On well-mixed shingle hashes the agreements are distributed
like independent ones (0.96 to 1.02 of the binomial's deviation), and candidates follow the formula within 1.1 points on
sets of 40, 300 and 2,000 shingles, for all three settings below. Rensa 0.5.0 permutes 1.5 million shingles in 0.006 s
instead of 0.067 s (of 0.19 s in all), but its rows are not independent on sets of a few hundred: 0.73 to 0.84 of the
deviation, candidates up to 2.1 points off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from marin_assets.stages.dedup.shingles import BASE, mixed, shingle_hashes
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK_SHINGLES = 1024
"""Shingles permuted at once: 112 permutations take 460 kB, which fits in the processor's cache."""
MAX_NGRAM = 100
MAX_PERMUTATIONS = 4096


class MinHashError(MarinError, ValueError):
    """Settings out of bounds."""


@dataclass(frozen=True, kw_only=True)
class MinHash:
    """The settings of signatures, which define near-duplicates."""

    ngram: int = 5
    """Words in a shingle. A shorter document has one shingle."""
    bands: int = 14
    rows: int = 8
    """Permutations in a band."""
    seed: int = 1
    """Seed of the permutations."""

    def inclusion_probability(self, similarity: float) -> float:
        """Return the probability that two documents of this Jaccard similarity become a pair."""
        return 1 - (1 - similarity**self.rows) ** self.bands


FINEWEB = MinHash()
"""14 bands of 8: finds half of the pairs at a similarity of 0.68 (Penedo et al. 2024, arXiv:2406.17557)."""
NEMO_CURATOR = MinHash(bands=20, rows=13)
"""20 bands of 13: half at 0.77. NeMo Curator's bands; its shingles are 24 characters, these are 5 words."""
ZYDA = MinHash(ngram=13, bands=32, rows=4)
"""32 bands of 4 on 13-grams: half at 0.38 (Tokpanov et al. 2024, arXiv:2406.01981)."""


def require_sound(minhash: MinHash) -> None:
    """Raise MinHashError for settings out of bounds."""
    limits = {"ngram": (1, MAX_NGRAM), "bands": (1, MAX_PERMUTATIONS), "rows": (1, MAX_PERMUTATIONS)}
    for field, (low, high) in {**limits, "seed": (0, 2**32 - 1)}.items():
        value = getattr(minhash, field)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise MinHashError(f"minhash.{field} is {value!r}, expected a whole number from {low} to {high}.")
    if (permutations := minhash.bands * minhash.rows) > MAX_PERMUTATIONS:
        raise MinHashError(
            f"minhash has {minhash.bands} bands of {minhash.rows} rows, {permutations} permutations, expected at most "
            f"{MAX_PERMUTATIONS}. Use fewer bands or rows."
        )


class Signer:
    """Computes signatures. Holds the permutations and a buffer to apply them in. Raises MinHashError."""

    def __init__(self, minhash: MinHash) -> None:
        import numpy as np

        require_sound(minhash)
        self.minhash = minhash
        self.permutations = minhash.bands * minhash.rows
        numbers = np.arange(2 * self.permutations, dtype=np.uint64) + np.uint64(minhash.seed << 32)
        drawn = (mixed(numbers * np.uint64(BASE)) >> np.uint64(32)).astype(np.uint32)
        self._factors = drawn[: self.permutations, None] | np.uint32(1)
        self._addends = drawn[self.permutations :, None]
        self._buffer = np.empty(self.permutations * CHUNK_SHINGLES, np.uint32)

    def signature(self, text: str) -> NDArray[np.uint32] | None:
        """Return the signature of a text, of shape [permutations]; None for a text without a word."""
        shingles = shingle_hashes(text, self.minhash.ngram)
        return self.of_shingles(shingles) if len(shingles) else None

    def of_shingles(self, shingles: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the minimum of each permutation over the shingles [n], n > 0; shape [permutations]."""
        import numpy as np

        least = np.full(self.permutations, 2**32 - 1, np.uint32)
        for start in range(0, len(shingles), CHUNK_SHINGLES):
            chunk = shingles[start : start + CHUNK_SHINGLES]
            permuted = self._buffer[: self.permutations * len(chunk)].reshape(self.permutations, len(chunk))
            np.multiply(self._factors, chunk, out=permuted)
            np.add(permuted, self._addends, out=permuted)
            np.minimum(least, permuted.min(axis=1), out=least)
        return least

    def band_keys(self, signatures: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return a hash of each band [n, bands] of signatures [n, permutations].

        Among a billion documents, 0.03 pairs a band are expected to share the same 64 bits by chance.
        """
        import numpy as np

        rows = signatures.reshape(len(signatures), self.minhash.bands, self.minhash.rows)
        keys = np.zeros(rows.shape[:2], np.uint64)
        for row in range(self.minhash.rows):
            keys *= np.uint64(BASE)
            keys += rows[:, :, row]
            mixed(keys)
        return keys
