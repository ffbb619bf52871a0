"""Index from n-grams to the questions that contain them: a table of hashes, built once and loaded by every worker.

The hash of an n-gram is a polynomial in the 64-bit hashes (xxHash64) of its words, so hashing a document's n-grams
takes n multiplications of whole arrays. A word that occurs in no question hashes to 0. With 10^12 n-grams in documents
and 10^7 in questions, the chance of a collision is about one half: 10^19 pairs, 2^64 hashes.

Global: memory and time are linear in the evaluations, some 150 bytes an n-gram while the index is built.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from marin_assets.stages.decontaminate.questions import Question
from marin_assets.stages.decontaminate.words import words_of
from marin_resources.storage.files import read_bytes, write_bytes

if TYPE_CHECKING:
    import numpy as np

MULTIPLIER = 0x9E3779B97F4A7C15
"""Odd, so no power of it is 0 modulo 2^64 (2^64 divided by the golden ratio)."""
WORDS_AT_ONCE = 1 << 20
"""Words of a document that are matched together: arrays stay at 8 MB for a document of any length."""
FILTER_BITS_MAX = 26


@dataclass(frozen=True)
class Match:
    """The n-grams of questions that a document contains."""

    ngrams: np.ndarray
    """int64, the numbers of the different n-grams, ascending."""
    places: np.ndarray
    """int64, the word at which each first begins."""


@dataclass(frozen=True)
class NgramIndex:
    """The n-grams of all questions, numbered by length, then by hash."""

    words: list[str]
    lengths: list[int]
    """Lengths of n-grams in words, ascending; usually one."""
    keys: list[np.ndarray]
    """Hashes of the n-grams of each length, uint64, ascending."""
    starts: np.ndarray
    """int64 (n-grams + 1,): start of each n-gram's questions in `holders`."""
    holders: np.ndarray
    """int32: numbers of the questions that contain each n-gram."""
    sizes: np.ndarray
    """int64 (questions,): number of different n-grams of each question."""
    names: list[tuple[str, str]]
    """(evaluation, id) of each question."""
    _hashes: dict[str, int] = field(default_factory=dict, compare=False)
    _filters: list[tuple[np.ndarray, int]] = field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        self._hashes.update(zip(self.words, _word_hashes(self.words), strict=True))
        self._filters.extend(map(_filter, self.keys))

    @property
    def ngrams(self) -> int:
        return len(self.starts) - 1

    def match(self, words: Sequence[str]) -> Match:
        """Return the n-grams of questions that occur among the words of a document."""
        import numpy as np  # 0.1 s to import

        numbers, places = [], []
        longest = max(self.lengths, default=1)
        for begin in range(0, max(len(words) - min(self.lengths, default=1), 0) + 1, WORDS_AT_ONCE):
            part = words[begin : begin + WORDS_AT_ONCE + longest - 1]
            hashes = np.fromiter(map(self._hashes.get, part, repeat(0)), np.uint64, len(part))
            base = 0
            for grams, keys, (bits, shift) in zip(rolling(hashes, self.lengths), self.keys, self._filters, strict=True):
                near = np.flatnonzero(bits[grams >> np.uint64(shift)])
                if len(near):
                    rows = np.minimum(np.searchsorted(keys, grams[near]), len(keys) - 1)
                    hit = keys[rows] == grams[near]
                    numbers.append(rows[hit] + base)
                    places.append(near[hit] + begin)
                base += len(keys)
        if not numbers:
            return Match(np.zeros(0, np.int64), np.zeros(0, np.int64))
        ngrams, first = np.unique(np.concatenate(numbers), return_index=True)
        return Match(ngrams, np.concatenate(places)[first])

    def holders_of(self, ngrams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (indices into `ngrams`, questions), both int64: one pair for each question that contains an n-gram."""
        import numpy as np

        starts, counts = self.starts[ngrams], self.starts[ngrams + 1] - self.starts[ngrams]
        ends = np.cumsum(counts)
        rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
        return np.repeat(np.arange(len(ngrams)), counts), self.holders[rows].astype(np.int64)

    def length_of(self, ngram: int) -> int:
        """Return the length in words of an n-gram, given by its number."""
        for n, keys in zip(self.lengths, self.keys, strict=True):
            if ngram < len(keys):
                return n
            ngram -= len(keys)
        raise IndexError(ngram)


def rolling(hashes: np.ndarray, lengths: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield, for each length n, ascending, the hashes of the n-grams that begin at each word.

    Each is uint64 (len(hashes) - n + 1,). The next length overwrites the array.
    """
    import numpy as np

    grams, done = np.zeros(len(hashes), np.uint64), 0
    for n in lengths:
        grams = grams[: max(len(hashes) - n + 1, 0)]
        for i in range(done, n):
            grams *= np.uint64(MULTIPLIER)
            grams += hashes[i : i + len(grams)]
        done = n
        yield grams


def build_index(questions: Sequence[Question], ngram: int, min_ngram: int) -> NgramIndex:
    """Index the questions' n-grams of `ngram` words. A shorter question of at least `min_ngram` words is one n-gram."""
    import numpy as np

    texts = [words_of(question.text) for question in questions]
    words = sorted({word for text in texts for word in text})
    hashes = dict(zip(words, _word_hashes(words), strict=True))
    by_length: dict[int, list[tuple[np.ndarray, int]]] = {}
    sizes = np.zeros(len(questions), np.int64)
    for number, text in enumerate(texts):
        n = min(ngram, len(text))
        if n >= min_ngram:
            [grams] = map(np.unique, rolling(np.array([hashes[word] for word in text], np.uint64), [n]))
            by_length.setdefault(n, []).append((grams, number))
            sizes[number] = len(grams)
    lengths = sorted(by_length)
    keys, counts, holders = [], [np.zeros(1, np.int64)], [np.zeros(0, np.int32)]
    for n in lengths:
        grams = np.concatenate([grams for grams, _ in by_length[n]])
        numbers = np.repeat([number for _, number in by_length[n]], [len(grams) for grams, _ in by_length[n]])
        order = np.lexsort((numbers, grams))
        unique, of_each = np.unique(grams, return_counts=True)
        keys.append(unique)
        counts.append(of_each)
        holders.append(numbers[order].astype(np.int32))
    return NgramIndex(
        words=words,
        lengths=lengths,
        keys=keys,
        starts=np.cumsum(np.concatenate(counts)),
        holders=np.concatenate(holders),
        sizes=sizes,
        names=[(question.evaluation, question.id) for question in questions],
    )


def save_index(index: NgramIndex, path: str) -> None:
    import numpy as np

    about = {"words": index.words, "lengths": index.lengths, "names": index.names}
    arrays: dict[str, Any] = {f"keys{i}": keys for i, keys in enumerate(index.keys)}
    arrays.update(starts=index.starts, holders=index.holders, sizes=index.sizes)
    out = io.BytesIO()
    np.savez(out, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)
    write_bytes(path, out.getvalue())


@lru_cache(maxsize=1)
def load_index(path: str, sha256: str) -> NgramIndex:
    """Load the index that `save_index` wrote, once a process while the file's SHA-256 stays the same."""
    import numpy as np

    with np.load(io.BytesIO(read_bytes(path)), allow_pickle=False) as stored:
        about: dict[str, Any] = json.loads(stored["about"].tobytes())
        return NgramIndex(
            words=about["words"],
            lengths=about["lengths"],
            keys=[stored[f"keys{i}"] for i in range(len(about["lengths"]))],
            starts=stored["starts"],
            holders=stored["holders"],
            sizes=stored["sizes"],
            names=[(evaluation, id) for evaluation, id in about["names"]],
        )


def _word_hashes(words: Sequence[str]) -> list[int]:
    import xxhash

    return [xxhash.xxh64_intdigest(word.encode()) or 1 for word in words]  # 0 means a word that no question has


def _filter(keys: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (table, shift): `table[hash >> shift]` is False if the hash is no key. 16 entries a key, at most 64 MB."""
    import numpy as np

    bits = min(max(len(keys) * 16, 2).bit_length(), FILTER_BITS_MAX)
    table = np.zeros(1 << bits, bool)
    table[keys >> np.uint64(64 - bits)] = True
    return table, 64 - bits
