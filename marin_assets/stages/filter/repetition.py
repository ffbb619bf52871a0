"""How much of a text repeats: n-grams of words, and whole lines or paragraphs (Rae et al. 2021, arXiv:2112.11446, A.1).

All of it takes time in n log n of the words. Sums of products of characters, which numpy makes at once, find where an
n-gram might be repeated; there the characters themselves are compared, so the counts are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from marin_assets.stages.filter.once import once

BASE = 0x9E3779B97F4A7C15
"""Of the polynomial modulo 2^64: odd, so that no power of it vanishes."""
MAX_KEY = 2**63
TOGETHER = range(5, 11)
"""The n for which duplicate n-grams are counted."""


def duplicates(elements: Sequence[str]) -> tuple[int, int]:
    """How many elements are there before already, and their characters."""
    unique = set(elements)
    if len(unique) == len(elements):
        return 0, 0
    return len(elements) - len(unique), sum(map(len, elements)) - sum(map(len, unique))


class NGrams:
    """The n-grams of a text's words; `vocabulary` is each word once, if that is known."""

    def __init__(self, words: Sequence[str], vocabulary: Iterable[str] | None = None) -> None:
        self._words = words
        self._vocabulary = dict.fromkeys(words) if vocabulary is None else vocabulary
        self._most: dict[int, int] = {}
        """How often the most frequent n-gram is there, for the n of which that was asked."""
        self._fewest_of: dict[int, Any] = {}

    def top_characters(self, n: int) -> int:
        """Characters of the most frequent n-gram (the first of these), spaces between its words, times its count.

        0 if there are fewer than n words.
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
        self._most[n] = most = int(lengths.max())
        first = 0 if most == 1 else _first_of(order[ends[1:][lengths == most]], keys)
        return (int(self._starts[first + n] - self._starts[first]) + n - 1) * most

    def most_top_characters(self, n: int) -> int:
        """What `top_characters` may be at most: an n-gram is not more frequent than its words, nor than what it begins
        with."""
        import numpy as np

        if len(self._words) < n:
            return 0
        known = [most for shorter, most in self._most.items() if shorter < n]
        fewest = np.minimum(self._fewest(n), min(known)) if known else self._fewest(n)
        return int((fewest * (self._starts[n:] - self._starts[:-n] + (n - 1))).max())

    def duplicate_characters(self, n: int) -> int:
        """Characters of the n-grams that are there before, from left to right; what is counted is skipped.

        N-grams are the same if their characters are, whatever the borders of their words. n is one of TOGETHER.
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

    def most_duplicate_characters(self, n: int) -> int:
        """What `duplicate_characters` may be at most: found in a fifth of the time, and for most texts too little."""
        if len(self._words) <= n or not (repeated := self._rolled[1][n - TOGETHER[0]]):
            return 0
        return repeated * self._longest(n)

    def _longest(self, n: int) -> int:
        """Characters of the longest n-gram."""
        return int((self._starts[n:] - self._starts[:-n]).max()) if n <= len(self._words) else 0

    def _fewest(self, n: int) -> Any:
        """How often the rarest word of each n-gram is there; int64 [words - n + 1]."""
        import numpy as np

        if n not in self._fewest_of:
            numbers, count = self._word_numbers
            self._fewest_of[n] = (
                np.bincount(numbers, minlength=count)[numbers]
                if n == 1
                else np.minimum(self._fewest(n - 1)[:-1], self._fewest(1)[n - 1 :])
            )
        return self._fewest_of[n]

    @once
    def _joined(self) -> str:
        return "".join(self._words)

    @once
    def _starts(self) -> Any:
        """Where each word begins in the joined words, and where the last ends; int64 [words + 1]."""
        import numpy as np

        starts = np.zeros(len(self._words) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, self._words), np.int64, len(self._words)), out=starts[1:])
        return starts

    @once
    def _start_list(self) -> list[int]:
        return self._starts.tolist()

    @once
    def _word_numbers(self) -> tuple[Any, int]:
        """Each word's number, int64 [words], and how many numbers there are."""
        import numpy as np

        number = {word: i for i, word in enumerate(self._vocabulary)}
        return np.fromiter(map(number.__getitem__, self._words), np.int64, len(self._words)), len(number)

    def _keys(self, n: int) -> Any:
        """A number for each n-gram, equal where the n-grams are; int64 [words - n + 1]."""
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
        """At each word's start, the sum of c[k] * BASE^k before it, and BASE^(characters - start).

        uint64 [words + 1] both.
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
        """For each n of TOGETHER a value of each n-gram, uint64 [n, words], and how many are there before.

        Made for all n together, since calls of numpy take longer than what they do for a text of some hundred words.
        """
        import numpy as np

        sums, scales = self._polynomials
        words = len(self._words)
        values = np.tile(np.arange(words, dtype=np.uint64), (len(TOGETHER), 1))  # where there is no n-gram
        for row, n in enumerate(TOGETHER):
            if n <= words:
                np.multiply(sums[n:] - sums[:-n], scales[:-n], out=values[row, : words - n + 1])
        ordered = np.sort(values, axis=1)
        return values, (ordered[:, 1:] == ordered[:, :-1]).sum(axis=1).tolist()

    def _maybe_repeated(self, n: int) -> list[int]:
        """Where n-grams stand that are there more than once, and perhaps, very rarely, some that are not."""
        import numpy as np

        if len(self._words) <= n:
            return []
        rows, repeated_of = self._rolled
        if not repeated_of[n - TOGETHER[0]]:
            return []
        values = rows[n - TOGETHER[0], : len(self._words) - n + 1]
        order = np.argsort(values)
        ordered = values[order]
        same = ordered[1:] == ordered[:-1]
        repeated = np.zeros(len(values), bool)
        repeated[order[1:][same]] = True
        repeated[order[:-1][same]] = True
        return np.flatnonzero(repeated).tolist()


def _first_of(wanted: Any, keys: Any) -> int:
    """Where the first key stands that is one of `wanted`."""
    import numpy as np

    if len(wanted) > 4:
        return int(np.isin(keys, wanted).argmax())
    return min(int((keys == key).argmax()) for key in wanted)
