"""The n-grams of words that occur more than once, exactly, in n log n of the number of words.

The n-grams that begin at each word are sorted once, as numbers into which as many words are packed as fit. Neighbours
in that order have the longest common beginnings: an n-gram repeats where n words are common with a neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Any

BITS = 62
"""Those of an int64 into which words are packed."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Sizes of the repeats in a text, by the n of the n-grams. An n without a repeat is missing."""

    top: Mapping[int, int]
    """Characters of the words in all occurrences of the most frequent n-gram, the first of equally frequent ones."""
    covered: Mapping[int, int]
    """Characters of the words that are part of a repeated n-gram, each word once."""


NOTHING = Repeats({}, {})


def repeats_of(
    words: Sequence[str], lengths: Sequence[int], counts: Mapping[str, int], top: range, covered: range
) -> Repeats:
    """Return the repeats of the n-grams for the n of `top` and of `covered`, all above 1 and `covered` the longer.

    Beside the words are the characters of each, and the occurrences of each different one.
    """
    import numpy as np

    if len(counts) == len(words):
        return NOTHING
    number = dict(zip((word for word, count in counts.items() if count > 1), range(len(words)), strict=False))
    once = len(number)  # stands for every word that occurs once
    numbers = np.full(len(words) + covered[-1], once)
    numbers[: len(words)] = np.fromiter(map(number.get, words, repeat(once)), np.int64, len(words))
    again = numbers < once
    positions = (again[:-1] & again[1:]).nonzero()[0]
    if len(positions) < 2:
        return NOTHING
    starts = np.zeros(len(words) + 1, np.int64)
    np.fromiter(lengths, np.int64, len(words)).cumsum(out=starts[1:])
    order, common = _sorted(numbers[positions[:, None] + _places(covered[-1])], once)
    ordered = positions[order]
    longest = int(common.max())
    tops = {n: _top(n, ordered, common, starts) for n in top if n <= longest}
    if longest < covered[0]:
        return Repeats(tops, {})
    repeated = np.empty(len(order), np.int64)
    repeated[order] = np.maximum(common[1:], common[:-1])
    return Repeats(tops, {n: _covered(n, positions[repeated >= n], starts) for n in covered if n <= longest})


def _sorted(ngrams: Any, once: int) -> tuple[Any, Any]:
    """Return the order of the n-grams, int64 [positions, n], and the number of words that neighbours have in common.

    The numbers are before the first n-gram, where it is 0, between two, and behind the last. A word that occurs once,
    the number `once`, is not common.
    """
    import numpy as np

    count, n = ngrams.shape
    bits = once.bit_length()
    width = max(1, BITS // bits)
    packed = [ngrams[:, at : at + width] @ _powers(bits, min(width, n - at)) for at in range(0, n, width)]
    order = np.lexsort(packed[::-1]) if len(packed) > 1 else packed[0].argsort()
    ordered = ngrams[order]
    is_common = np.zeros((count + 1, n + 1), bool)  # the last is false, and is where the first false one is searched
    np.equal(ordered[1:], ordered[:-1], out=is_common[1:-1, :n])
    is_common[1:-1, :n] &= ordered[1:] < once
    return order, is_common.argmin(axis=1)


@cache
def _places(n: int) -> Any:
    import numpy as np

    return np.arange(n)


@cache
def _powers(bits: int, width: int) -> Any:
    """Return the factors by which `width` numbers of `bits` bits each add up to one number."""
    import numpy as np

    return 1 << bits * np.arange(width - 1, -1, -1)


def _top(n: int, positions: Any, common: Any, starts: Any) -> int:
    """Return the characters of the most frequent n-gram, given the positions in the order of the n-grams."""
    import numpy as np

    borders = (common < n).nonzero()[0]
    times = borders[1:] - borders[:-1]
    most = times.max()
    first = np.minimum.reduceat(positions, borders[:-1])[times == most].min()
    return int((starts[first + n] - starts[first]) * most)


def _covered(n: int, positions: Any, starts: Any) -> int:
    """Return the characters of the words in the n-grams at `positions`, which are in order."""
    import numpy as np

    ends = positions + n
    np.minimum(ends[:-1], positions[1:], out=ends[:-1])
    return int((starts[ends] - starts[positions]).sum())
