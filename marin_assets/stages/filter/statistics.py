"""What filters measure of a text. Each number is computed when it is first asked for, once for all filters.

The definitions are those of datatrove 0.9's filters to the letter, so that thresholds that were set with them hold.
A ratio of nothing is 0.
"""

from __future__ import annotations

import re
from collections import Counter

from marin_assets.stages.filter.characters import SYMBOLS, TERMINAL_MARKS
from marin_assets.stages.filter.once import once
from marin_assets.stages.filter.repetition import NGrams, duplicates
from marin_assets.stages.filter.words import MAX_REMEMBERED, MAX_REMEMBERED_CHARACTERS, Splitter

PARAGRAPH_BREAK = re.compile(r"\n{2,}")
BULLETS = ("•", "-")
ELLIPSES = ("...", "…")


class TextStatistics:
    """Statistics of one text, with the words that `splitter` finds in it."""

    def __init__(self, text: str, splitter: Splitter) -> None:
        self.text = text
        self.splitter = splitter

    def of(self, text: str) -> TextStatistics:
        """Statistics of another text, with the same splitter."""
        return self if text == self.text else TextStatistics(text, self.splitter)

    @once
    def words(self) -> list[str]:
        """Words, and marks."""
        return self.splitter.words(self.text)

    @once
    def word_counts(self) -> Counter[str]:
        return Counter(self.words)

    @once
    def word_count(self) -> int:
        """Words that are more than symbols."""
        return self._words_that_are[0]

    @once
    def mean_word_length(self) -> float:
        """Characters, of words that are more than symbols."""
        return _ratio(self._words_that_are[1], self.word_count)

    @once
    def alphabetic_word_ratio(self) -> float:
        """Words and marks that have a letter."""
        return _ratio(self._words_that_are[2], len(self.words))

    def stop_word_count(self, stop_words: tuple[str, ...]) -> int:
        """How many of `stop_words` there are, in their case."""
        return sum(1 for word in stop_words if word in self.word_counts)

    @once
    def hash_ratio(self) -> float:
        """ "#" for each word or mark."""
        return _ratio(self.text.count("#"), len(self.words))

    @once
    def ellipsis_ratio(self) -> float:
        """ "..." and "…" for each word or mark."""
        return _ratio(sum(map(self.text.count, ELLIPSES)), len(self.words))

    @once
    def lines(self) -> list[str]:
        """Lines as Unicode ends them, empty ones too."""
        return self.text.splitlines()

    @once
    def bullet_line_ratio(self) -> float:
        if not any(bullet in self.text for bullet in BULLETS):
            return 0.0
        return _ratio(sum(line.lstrip().startswith(BULLETS) for line in self.lines), len(self.lines))

    @once
    def ellipsis_line_ratio(self) -> float:
        if not any(ellipsis in self.text for ellipsis in ELLIPSES):
            return 0.0
        return _ratio(sum(line.rstrip().endswith(ELLIPSES) for line in self.lines), len(self.lines))

    @once
    def filled_lines(self) -> list[str]:
        """Lines between line feeds that are more than whitespace."""
        return [line for line in self.text.split("\n") if line and not line.isspace()]

    @once
    def terminal_line_ratio(self) -> float:
        """Filled lines whose last character ends a sentence."""
        return _ratio(sum(line[-1] in TERMINAL_MARKS for line in self.filled_lines), len(self.filled_lines))

    def short_line_ratio(self, length: int) -> float:
        """Filled lines of at most `length` characters."""
        return _ratio(sum(len(line) <= length for line in self.filled_lines), len(self.filled_lines))

    @once
    def duplicate_filled_line_characters(self) -> float:
        """Share of the characters, line feeds aside, that are in filled lines that are there before."""
        return _ratio(duplicates(self.filled_lines)[1], len(self.text) - self.text.count("\n"))

    @once
    def line_feed_ratio(self) -> float:
        """Line feeds for each word or mark."""
        return _ratio(self.text.count("\n"), len(self.words))

    @once
    def duplicate_lines(self) -> tuple[float, float]:
        """Share of the lines, and of the characters, that are lines that are there before."""
        lines = _between_line_feeds(self.text)
        count, characters = duplicates(lines)
        return _ratio(count, len(lines)), _ratio(characters, len(self.text))

    @once
    def duplicate_paragraphs(self) -> tuple[float, float]:
        """Share of the paragraphs, and of the characters, that are paragraphs that are there before."""
        text = self.text.strip()
        paragraphs = PARAGRAPH_BREAK.split(text) if "\n\n" in text else [text]
        count, characters = duplicates(paragraphs)
        return _ratio(count, len(paragraphs)), _ratio(characters, len(self.text))

    def top_ngram_characters(self, n: int) -> float:
        """Share of the characters that the most frequent n-gram has."""
        return _ratio(self._ngrams.top_characters(n), len(self.text))

    def most_top_ngram_characters(self, n: int) -> float:
        """What `top_ngram_characters` may be at most, found sooner."""
        return _ratio(self._ngrams.most_top_characters(n), len(self.text))

    def duplicate_ngram_characters(self, n: int) -> float:
        """Share of the characters that are in n-grams that are there before."""
        return _ratio(self._ngrams.duplicate_characters(n), len(self.text))

    def most_duplicate_ngram_characters(self, n: int) -> float:
        """What `duplicate_ngram_characters` may be at most, found sooner."""
        return _ratio(self._ngrams.most_duplicate_characters(n), len(self.text))

    @once
    def sentence_count(self) -> int:
        return self.splitter.count_sentences(self.text)

    @once
    def _ngrams(self) -> NGrams:
        return NGrams(self.words, self.word_counts)

    @once
    def _words_that_are(self) -> tuple[int, int, int]:
        """More than symbols, the characters of these, and alphabetic."""
        import numpy as np

        kinds = np.fromiter(map(_KINDS.__getitem__, self.word_counts), np.int64, len(self.word_counts))
        times = np.fromiter(self.word_counts.values(), np.int64, len(self.word_counts))
        return int(times @ (kinds >> 1 & 1)), int(times @ (kinds >> 2)), int(times @ (kinds & 1))


class KindsOfWords(dict[str, int]):
    """What a word is, remembered: 1 if it has a letter, 2 if it is more than symbols, and then 4 for each character."""

    def __missing__(self, word: str) -> int:
        kind = int(any(map(str.isalpha, word)))
        if not SYMBOLS.issuperset(word):
            kind |= 2 | len(word) << 2
        if len(word) <= MAX_REMEMBERED_CHARACTERS:
            if len(self) >= MAX_REMEMBERED:
                self.clear()
            self[word] = kind
        return kind


_KINDS = KindsOfWords()


def _between_line_feeds(text: str) -> list[str]:
    """What stands between runs of line feeds, in no order; before the first and after the last may be nothing."""
    lines = list(filter(None, text.split("\n")))
    return lines + [""] * (text.startswith("\n") + text.endswith("\n")) if text else [""]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
