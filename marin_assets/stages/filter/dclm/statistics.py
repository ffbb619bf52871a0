"""The numbers that DCLM's filters measure of a text. Each is computed on its first access, once for all filters."""

from __future__ import annotations

from collections import Counter

from marin_assets.stages.filter.cached_property import once
from marin_assets.stages.filter.dclm.words import count_tokens, unicode_words
from marin_assets.stages.filter.repetition import NGrams
from marin_assets.stages.filter.statistics import TextStatistics

BULLETS = ("●", "•", "*", "-")
ELLIPSES = ("...", ". . .", "…")
SYMBOLS = ("#", *ELLIPSES)


class DclmStatistics:
    """Statistics of one text as DCLM defines them. A ratio with a denominator of 0 is 0."""

    def __init__(self, text: str) -> None:
        self.text = text

    @once
    def token_count(self) -> int:
        """Number of fastText's tokens that begin with a letter or digit."""
        return count_tokens(self.text)

    @once
    def words(self) -> list[str]:
        """Words between white space, in order."""
        return self.text.split()

    @once
    def mean_word_length(self) -> float:
        """Mean number of characters of the words between white space."""
        return _ratio(sum(map(len, self.words)), len(self.words))

    @once
    def symbol_ratio(self) -> float:
        """Number of "#", "...", ". . ." and "…" per word between white space."""
        return _ratio(sum(map(self.text.count, SYMBOLS)), len(self.words))

    @once
    def nonalphabetic_word_ratio(self) -> float:
        """Share of the words between white space without a letter."""
        without = sum(times for word, times in Counter(self.words).items() if not any(map(str.isalpha, word)))
        return _ratio(without, len(self.words))

    def stop_word_count(self, stop_words: tuple[str, ...]) -> int:
        """Return how often one of the `stop_words` occurs, in any case."""
        listed = frozenset(stop_words)
        return sum(word.lower() in listed for word in self.words)

    @once
    def lines(self) -> list[str]:
        """Lines between line feeds that are not empty, without white space at their ends."""
        return [line for part in self.text.split("\n") if (line := part.strip())]

    @once
    def bullet_line_ratio(self) -> float:
        """Share of the lines that begin with a bullet."""
        return _ratio(sum(line.startswith(BULLETS) for line in self.lines), len(self.lines))

    @once
    def ellipsis_line_ratio(self) -> float:
        """Share of the lines that end in an ellipsis."""
        return _ratio(sum(line.endswith(ELLIPSES) for line in self.lines), len(self.lines))

    @once
    def repeated_lines(self) -> tuple[float, float]:
        """Share of the lines that occur more than once, and share of the lines' characters in them."""
        return _repeated(self.lines)

    @once
    def repeated_paragraphs(self) -> tuple[float, float]:
        """Share of the paragraphs that occur more than once, and share of the paragraphs' characters in them."""
        return _repeated([paragraph for part in self.text.split("\n\n") if (paragraph := part.strip())])

    def top_ngram_characters(self, n: int) -> float:
        """Return the share of the words' characters in all occurrences of the longest of the most frequent n-grams.

        0 if no n-gram repeats.
        """
        return _ratio(self._ngrams.longest_top_characters(n), self._characters)

    def top_ngram_characters_bound(self, n: int) -> float:
        """Return an upper bound of `top_ngram_characters`, faster to compute."""
        return _ratio(self._ngrams.top_characters_bound(n), self._characters)

    def repeated_ngram_characters(self, n: int) -> float:
        """Return the share of the words' characters in n-grams that occur more than once, each character once."""
        return _ratio(self._ngrams.covered_characters(n), self._characters)

    def repeated_ngram_characters_bound(self, n: int) -> float:
        """Return an upper bound of `repeated_ngram_characters`, faster to compute."""
        return _ratio(self._ngrams.covered_characters_bound(n), self._characters)

    @once
    def _ngrams(self) -> NGrams:
        return NGrams(unicode_words(self.text))

    @once
    def _characters(self) -> int:
        return self._ngrams.characters


def dclm_statistics(statistics: TextStatistics) -> DclmStatistics:
    """Return DCLM's statistics of the same text."""
    return statistics.by(DclmStatistics)


def _repeated(parts: list[str]) -> tuple[float, float]:
    if len(parts) < 2 or len(counts := Counter(parts)) == len(parts):
        return 0.0, 0.0
    repeated = [(part, times) for part, times in counts.items() if times > 1]
    characters = sum(len(part) * times for part, times in repeated)
    return sum(times for _, times in repeated) / len(parts), characters / sum(map(len, parts))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
