"""Repetition in a text: n-grams of words, and whole lines or paragraphs (Rae et al. 2021, arXiv:2112.11446, A.1).

The time is n log n in the number of words. Polynomial hashes of the characters, computed by numpy for all n-grams at
once, locate possible repeats; there the characters themselves are compared, so the counts are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from marin_assets.stages.filter.cached_property import once

BASE = 0x9E3779B97F4A7C15
"""Base of the polynomial modulo 2^64: odd, so no power of it is 0."""
MAX_KEY = 2**63
DUPLICATE_N = range(5, 11)
"""The n for which duplicate n-grams are counted."""


def duplicates(elements: Sequence[str]) -> tuple[int, int]:
    """Return the number of elements that repeat an earlier one, and their characters."""
    unique = set(elements)
    if len(unique) == len(elements):
        return 0, 0
    return len(elements) - len(unique), sum(map(len, elements)) - sum(map(len, unique))


class NGrams:
    """The n-grams of a text's words. Pass `vocabulary`, each word once, if it is known."""

    def __init__(self, words: Sequence[str], vocabulary: Iterable[str] | None = None) -> None:
        self._words = words
        self._vocabulary = dict.fromkeys(words) if vocabulary is None else vocabulary
        self._top_counts: dict[int, int] = {}
        """Occurrences of the most frequent n-gram, for each n for which they were counted."""
        self._rarest_word_counts_of: dict[int, Any] = {}
        self._least_covered: int | None = None
        """Characters in repeated n-grams of the longest n for which they were counted: longer n-grams cover no more."""

    def top_characters(self, n: int) -> int:
        """Return the characters of the most frequent n-gram, with spaces between its words, times its count.

        Of equally frequent n-grams the first counts. 0 for fewer than n words.
        """
        import numpy as np

        count = len(self._words) - n + 1
        if count < 1:
            return 0
        keys = self._keys(n)
        order = np.sort(keys)
        last = np.flatnonzero(order[1:] != order[:-1])
        ends = np.concatenate(([-1], last, [count - 1]))
        lengths = ends[1:] - ends[:-1]
        self._top_counts[n] = most = int(lengths.max())
        first = 0 if most == 1 else _first_of(order[ends[1:][lengths == most]], keys)
        return (int(self._starts[first + n] - self._starts[first]) + n - 1) * most

    def longest_top_characters(self, n: int) -> int:
        """Return the characters of the most frequent n-gram times its count; of equally frequent ones the longest.

        0 for fewer than n words, and if no n-gram repeats.
        """
        import numpy as np

        if len(self._words) < n:
            return 0
        keys = self._keys(n)
        _, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
        self._top_counts[n] = most = int(counts.max())
        if most == 1:
            return 0
        return int((self._starts[n:] - self._starts[:-n])[counts[numbers] == most].max()) * most

    def top_characters_bound(self, n: int) -> int:
        """Return an upper bound of `top_characters`: an n-gram is at most as frequent as its words and its prefixes."""
        import numpy as np

        if len(self._words) < n:
            return 0
        shorter_counts = [most for shorter, most in self._top_counts.items() if shorter < n]
        counts = (
            np.minimum(self._rarest_word_counts(n), min(shorter_counts))
            if shorter_counts
            else self._rarest_word_counts(n)
        )
        return int((counts * (self._starts[n:] - self._starts[:-n] + (n - 1))).max())

    def duplicate_characters(self, n: int) -> int:
        """Return the characters of n-grams that repeat an earlier one, counted from left to right without overlap.

        N-grams are equal if their joined characters are, whatever their word borders. n is one of DUPLICATE_N.
        """
        positions = self._maybe_repeated(n)
        if not positions:
            return 0
        starts = self._start_list
        seen: set[str] = set()
        characters = free = 0
        for i in positions:
            if i < free:
                continue
            gram = self._joined[starts[i] : starts[i + n]]
            if gram in seen:
                characters += len(gram)
                free = i + n
            else:
                seen.add(gram)
        return characters

    def duplicate_characters_bound(self, n: int) -> int:
        """Return an upper bound of `duplicate_characters` in a fifth of the time: most texts need nothing more."""
        if len(self._words) <= n or not (repeated := self._rolled[1][n - DUPLICATE_N[0]]):
            return 0
        return repeated * self._longest(n)

    def covered_characters(self, n: int) -> int:
        """Return the characters of the words in n-grams that occur more than once, each character once.

        n is one of DUPLICATE_N, and no smaller than in calls before.
        """
        import numpy as np

        if len(self._words) < n:
            return 0
        _, numbers, counts = np.unique(self._keys(n), return_inverse=True, return_counts=True)
        repeated = np.flatnonzero(counts[numbers] > 1)
        borders = np.zeros(len(self._words) + 1, np.int64)
        borders[repeated] += 1
        borders[repeated + n] -= 1
        covered = np.cumsum(borders[:-1]) > 0
        self._least_covered = int((self._starts[1:] - self._starts[:-1])[covered].sum())
        return self._least_covered

    def covered_characters_bound(self, n: int) -> int:
        """Return an upper bound of `covered_characters`, faster to compute."""
        if len(self._words) <= n or not (repeated := self._rolled[1][n - DUPLICATE_N[0]]):
            return 0
        most = 2 * repeated * self._longest(n)  # a repeated n-gram occurs at most once more than it repeats
        return most if self._least_covered is None else min(most, self._least_covered)

    @property
    def characters(self) -> int:
        """Number of characters of all words."""
        return len(self._joined)

    def _longest(self, n: int) -> int:
        """Return the characters of the longest n-gram."""
        return int((self._starts[n:] - self._starts[:-n]).max()) if n <= len(self._words) else 0

    def _rarest_word_counts(self, n: int) -> Any:
        """Return the count of the rarest word of each n-gram; int64 [words - n + 1]."""
        import numpy as np

        if n not in self._rarest_word_counts_of:
            numbers, count = self._word_numbers
            self._rarest_word_counts_of[n] = (
                np.bincount(numbers, minlength=count)[numbers]
                if n == 1
                else np.minimum(self._rarest_word_counts(n - 1)[:-1], self._rarest_word_counts(1)[n - 1 :])
            )
        return self._rarest_word_counts_of[n]

    @once
    def _joined(self) -> str:
        return "".join(self._words)

    @once
    def _starts(self) -> Any:
        """The offset of each word in the joined words, and the end of the last; int64 [words + 1]."""
        import numpy as np

        starts = np.zeros(len(self._words) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, self._words), np.int64, len(self._words)), out=starts[1:])
        return starts

    @once
    def _start_list(self) -> list[int]:
        return self._starts.tolist()

    @once
    def _word_numbers(self) -> tuple[Any, int]:
        """The number of each word in the vocabulary, int64 [words], and the size of the vocabulary."""
        import numpy as np

        number = {word: i for i, word in enumerate(self._vocabulary)}
        return np.fromiter(map(number.__getitem__, self._words), np.int64, len(self._words)), len(number)

    def _keys(self, n: int) -> Any:
        """Return a number for each n-gram; equal n-grams have equal numbers; int64 [words - n + 1]."""
        import numpy as np

        numbers, base = self._word_numbers
        keys, largest = numbers, base
        for i in range(1, n):
            if largest * base >= MAX_KEY:
                values, keys = np.unique(keys, return_inverse=True)
                largest = len(values)
            keys = keys[:-1] * base + numbers[i:]
            largest *= base
        return keys

    @once
    def _polynomials(self) -> tuple[Any, Any]:
        """At each word's start: the sum of c[k] * BASE^k before it, and BASE^(characters - start).

        Both are uint64 [words + 1].
        """
        import numpy as np

        codes = np.frombuffer(self._joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        powers = np.full(len(codes) + 1, BASE, np.uint64)
        powers[0] = 1
        np.cumprod(powers, out=powers)
        sums = np.zeros(len(codes) + 1, np.uint64)
        np.cumsum(codes * powers[:-1], out=sums[1:])
        return sums[self._starts], powers[len(codes) - self._starts]

    @once
    def _rolled(self) -> tuple[Any, list[int]]:
        """For each n of DUPLICATE_N: a hash of each n-gram, uint64 [n, words], and the number of repeated hashes.

        Computed for all n at once: for a text of a few hundred words a call of numpy costs more than its work.
        """
        import numpy as np

        sums, scales = self._polynomials
        words = len(self._words)
        values = np.tile(np.arange(words, dtype=np.uint64), (len(DUPLICATE_N), 1))  # distinct where no n-gram begins
        for row, n in enumerate(DUPLICATE_N):
            if n <= words:
                np.multiply(sums[n:] - sums[:-n], scales[:-n], out=values[row, : words - n + 1])
        ordered = np.sort(values, axis=1)
        return values, (ordered[:, 1:] == ordered[:, :-1]).sum(axis=1).tolist()

    def _maybe_repeated(self, n: int) -> list[int]:
        """Return the positions of n-grams that occur more than once, and very rarely of others (equal hashes)."""
        import numpy as np

        if len(self._words) <= n:
            return []
        rows, repeated_of = self._rolled
        if not repeated_of[n - DUPLICATE_N[0]]:
            return []
        values = rows[n - DUPLICATE_N[0], : len(self._words) - n + 1]
        order = np.argsort(values)
        ordered = values[order]
        same = ordered[1:] == ordered[:-1]
        repeated = np.zeros(len(values), bool)
        repeated[order[1:][same]] = True
        repeated[order[:-1][same]] = True
        return np.flatnonzero(repeated).tolist()


def _first_of(candidates: Any, keys: Any) -> int:
    """Return the position of the first key that is one of `wanted`."""
    import numpy as np

    if len(candidates) > 4:
        return int(np.isin(keys, candidates).argmax())
    return min(int((keys == key).argmax()) for key in candidates)
