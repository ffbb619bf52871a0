"""The numbers that filters measure of a text. Each is computed on its first access, once for all filters.

The definitions are exactly those of datatrove 0.9's filters, so thresholds that were set with datatrove apply. A ratio
with a denominator of 0 is 0.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, TypeVar

from marin_assets.stages.filter.cached_property import once
from marin_assets.stages.filter.repetition import NGrams, duplicates
from marin_assets.stages.filter.words.splitter import MAX_REMEMBERED, MAX_REMEMBERED_CHARACTERS, Splitter

V = TypeVar("V")


def _characters(ranges: str) -> frozenset[str]:
    """Return the characters of ranges such as "21-2F 3A"."""
    characters: set[str] = set()
    for part in ranges.split():
        first, _, last = part.partition("-")
        characters.update(map(chr, range(int(first, 16), int(last or first, 16) + 1)))
    return frozenset(characters)


TERMINAL_MARKS = _characters(
    "21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E 1735-1736 17D4-17D6 "
    "17D9-17DA 1803 1809 1944-1945 1AA8-1AAB 1B5A-1B5B 1B5E-1B5F 1B7D-1B7E 1C3B-1C3C 1C7E-1C7F 203C-203D 2047-2049 "
    "2E2E 2E3C 2E53-2E54 3002 A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB "
    "FE52 FE56-FE57 FF01 FF0E FF1F FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143 "
    "111C5-111C6 111CD 111DE-111DF 11238-11239 1123B-1123C 112A9 1144B-1144C 115C2-115C3 115C9-115D7 11641-11642 "
    "1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5 "
    "16B37-16B38 16B44 16E98 1BC9F 1DA88"
)
"""Marks that end a sentence, in any script: Unicode 15's Sentence_Terminal and Khmer's 17D6, 17D9, 17DA (FineWeb-2)."""
SYMBOLS = TERMINAL_MARKS | _characters(
    "0-8 B-1F 21-2F 3A-40 5B-60 7B-9F AB B4 BB 2013-2014 2019 201C-201E 2026 2236 2501 25BA 3001-3002 3008-300D "
    "3010-3011 FF01 FF05 FF08-FF09 FF0C FF0E FF11 FF1A-FF1B FF1F FF5E"
)
"""A word of only these characters is a symbol (CCNet's punctuation, Wenzek et al. 2019, and terminal marks)."""

PARAGRAPH_BREAK = re.compile(r"\n{2,}")
BULLETS = ("•", "-")
ELLIPSES = ("...", "…")


class TextStatistics:
    """Statistics of one text, with words and sentences by `splitter`."""

    def __init__(self, text: str, splitter: Splitter) -> None:
        self.text = text
        self.splitter = splitter
        self._views: dict[type, Any] = {}

    def of(self, text: str) -> TextStatistics:
        """Return the statistics of another text, with the same splitter."""
        return self if text == self.text else TextStatistics(text, self.splitter)

    def view(self, kind: type[V]) -> V:
        """Return the text as another class takes it, such as RedPajamaText: built once for all filters and signals."""
        if kind not in self._views:
            self._views[kind] = kind(self.text)  # type: ignore[call-arg]
        return self._views[kind]

    @once
    def words(self) -> list[str]:
        """Words and marks, in order."""
        return self.splitter.words(self.text)

    @once
    def word_counts(self) -> Counter[str]:
        return Counter(self.words)

    @once
    def word_count(self) -> int:
        """Number of words that are not symbols."""
        return self._word_totals[0]

    @once
    def mean_word_length(self) -> float:
        """Mean number of characters of the words that are not symbols."""
        return _ratio(self._word_totals[1], self.word_count)

    @once
    def alphabetic_word_ratio(self) -> float:
        """Share of words and marks that contain a letter."""
        return _ratio(self._word_totals[2], len(self.words))

    def stop_word_count(self, stop_words: tuple[str, ...]) -> int:
        """Return the number of different `stop_words` that occur, case-sensitive."""
        return sum(1 for word in stop_words if word in self.word_counts)

    @once
    def hash_ratio(self) -> float:
        """Number of "#" per word or mark."""
        return _ratio(self.text.count("#"), len(self.words))

    @once
    def ellipsis_ratio(self) -> float:
        """Number of "..." and "…" per word or mark."""
        return _ratio(sum(map(self.text.count, ELLIPSES)), len(self.words))

    @once
    def lines(self) -> list[str]:
        """Lines by Unicode's line ends, with empty ones."""
        return self.text.splitlines()

    @once
    def bullet_line_ratio(self) -> float:
        """Share of lines that begin with a bullet."""
        if not any(bullet in self.text for bullet in BULLETS):
            return 0.0
        return _ratio(sum(line.lstrip().startswith(BULLETS) for line in self.lines), len(self.lines))

    @once
    def ellipsis_line_ratio(self) -> float:
        """Share of lines that end in an ellipsis."""
        if not any(ellipsis in self.text for ellipsis in ELLIPSES):
            return 0.0
        return _ratio(sum(line.rstrip().endswith(ELLIPSES) for line in self.lines), len(self.lines))

    @once
    def filled_lines(self) -> list[str]:
        """Lines between line feeds, without lines of whitespace alone."""
        return [line for line in self.text.split("\n") if line and not line.isspace()]

    @once
    def terminal_line_ratio(self) -> float:
        """Share of filled lines whose last character is a terminal mark."""
        return _ratio(sum(line[-1] in TERMINAL_MARKS for line in self.filled_lines), len(self.filled_lines))

    def short_line_ratio(self, length: int) -> float:
        """Return the share of filled lines of at most `length` characters."""
        return _ratio(sum(len(line) <= length for line in self.filled_lines), len(self.filled_lines))

    @once
    def duplicate_filled_line_characters(self) -> float:
        """Share of the characters, without line feeds, in filled lines that repeat an earlier one."""
        return _ratio(duplicates(self.filled_lines)[1], len(self.text) - self.text.count("\n"))

    @once
    def line_feed_ratio(self) -> float:
        """Number of line feeds per word or mark."""
        return _ratio(self.text.count("\n"), len(self.words))

    @once
    def duplicate_lines(self) -> tuple[float, float]:
        """Share of the lines that repeat an earlier line, and share of the characters in them."""
        lines = _between_line_feeds(self.text)
        count, characters = duplicates(lines)
        return _ratio(count, len(lines)), _ratio(characters, len(self.text))

    @once
    def duplicate_paragraphs(self) -> tuple[float, float]:
        """Share of the paragraphs that repeat an earlier paragraph, and share of the characters in them."""
        text = self.text.strip()
        paragraphs = PARAGRAPH_BREAK.split(text) if "\n\n" in text else [text]
        count, characters = duplicates(paragraphs)
        return _ratio(count, len(paragraphs)), _ratio(characters, len(self.text))

    def top_ngram_characters(self, n: int) -> float:
        """Return the share of the characters in all occurrences of the most frequent n-gram."""
        return _ratio(self._ngrams.top_characters(n), len(self.text))

    def top_ngram_characters_bound(self, n: int) -> float:
        """Return an upper bound of `top_ngram_characters`, faster to compute."""
        return _ratio(self._ngrams.top_characters_bound(n), len(self.text))

    def duplicate_ngram_characters(self, n: int) -> float:
        """Return the share of the characters in n-grams that repeat an earlier one."""
        return _ratio(self._ngrams.duplicate_characters(n), len(self.text))

    def duplicate_ngram_characters_bound(self, n: int) -> float:
        """Return an upper bound of `duplicate_ngram_characters`, faster to compute."""
        return _ratio(self._ngrams.duplicate_characters_bound(n), len(self.text))

    @once
    def sentence_count(self) -> int:
        return self.splitter.count_sentences(self.text)

    @once
    def _ngrams(self) -> NGrams:
        return NGrams(self.words, self.word_counts)

    @once
    def _word_totals(self) -> tuple[int, int, int]:
        """Number of words that are not symbols, their characters, and number of words with a letter."""
        import numpy as np

        kinds = np.fromiter(map(_KINDS.__getitem__, self.word_counts), np.int64, len(self.word_counts))
        times = np.fromiter(self.word_counts.values(), np.int64, len(self.word_counts))
        return int(times @ (kinds >> 1 & 1)), int(times @ (kinds >> 2)), int(times @ (kinds & 1))


class WordKinds(dict[str, int]):
    """The kind of each word, remembered: 1 for a letter, plus 2 and 4 per character for a word that is not a symbol."""

    def __missing__(self, word: str) -> int:
        kind = int(any(map(str.isalpha, word)))
        if not SYMBOLS.issuperset(word):
            kind |= 2 | len(word) << 2
        if len(word) <= MAX_REMEMBERED_CHARACTERS:
            if len(self) >= MAX_REMEMBERED:
                self.clear()
            self[word] = kind
        return kind


_KINDS = WordKinds()


def _between_line_feeds(text: str) -> list[str]:
    """Return the pieces between runs of line feeds, in no order, with an empty one for a run at either end."""
    lines = list(filter(None, text.split("\n")))
    return lines + [""] * (text.startswith("\n") + text.endswith("\n")) if text else [""]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
