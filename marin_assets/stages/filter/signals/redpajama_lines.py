"""Lines of a text as RedPajama-V2's signals take them: each with its line feed, none after the last line feed.

Each list has one number a line, and is computed on its first access.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marin_assets.stages.filter.cached_property import once
from marin_assets.stages.filter.signals.code_points import LINE_FEED, NUMERIC, UPPER

DECIMALS = 8
JAVASCRIPT = "javascript"
ELLIPSES = ("...", "…")
TERMINAL_MARKS = (".", "!", "?", "”")
BULLETS = tuple("•‣▶◀◦■□▪▫–")


class RedPajamaLines:
    """The lines of a text, given the kinds of its characters, the normalized text, and its words by line."""

    def __init__(self, text: str, kinds: Any, normalized: str, words: Sequence[list[str]]) -> None:
        self._text, self._kinds, self._normalized, self._words = text, kinds, normalized, words

    @once
    def count(self) -> int:
        return len(self._words)

    @once
    def with_ellipsis(self) -> int:
        """Number of lines that end in an ellipsis."""
        if not any(ellipsis in self._text for ellipsis in ELLIPSES):
            return 0
        return sum(line.endswith(ELLIPSES) for line in self._stripped)

    @once
    def terminal_marks(self) -> list[int]:
        """1 for a line that ends in a terminal mark, 0 for another."""
        return [int(line.endswith(TERMINAL_MARKS)) for line in self._stripped]

    @once
    def bullets(self) -> list[int]:
        """1 for a line that begins with a bullet, 0 for another."""
        if not any(bullet in self._text for bullet in BULLETS):
            return [0] * self.count
        return [int(line.startswith(BULLETS)) for line in self._stripped]

    @once
    def javascripts(self) -> list[int]:
        """Number of words "javascript"."""
        if JAVASCRIPT not in self._normalized:
            return [0] * self.count
        return [words.count(JAVASCRIPT) for words in self._words]

    @once
    def words(self) -> list[int]:
        """Number of words."""
        return list(map(len, self._words))

    @once
    def capitals(self) -> list[float]:
        """Share of upper-case characters in the line, of which its line feed is one."""
        lengths, capitals, _ = self._totals
        return [round(part / length, DECIMALS) if part else 0.0 for part, length in zip(capitals, lengths, strict=True)]

    @once
    def numerals(self) -> list[float]:
        """Share of numeric characters in the line's words with one space between two."""
        return [
            round(part / (sum(map(len, words)) + len(words) - 1), DECIMALS) if part else 0.0
            for part, words in zip(self._totals[2], self._words, strict=True)
        ]

    @once
    def _stripped(self) -> list[str]:
        """The lines without whitespace at both ends."""
        return list(map(str.strip, self._text.split("\n")))[: self.count]

    @once
    def _totals(self) -> tuple[list[int], list[int], list[int]]:
        """Characters of the lines, with line feeds; those that are upper-case; and those that are numeric.

        In any form of Unicode and case a text has the same numeric characters.
        """
        import numpy as np

        if not self.count:
            return [], [], []
        borders = np.full(self.count + 1, len(self._kinds))
        borders[0] = 0
        feeds = (self._kinds & LINE_FEED).nonzero()[0]
        borders[1 : len(feeds) + 1] = feeds + 1
        flags = np.array([self._kinds & UPPER, self._kinds & NUMERIC], bool)
        capitals, numerals = np.add.reduceat(flags, borders[:-1], axis=1, dtype=np.int64).tolist()
        return (borders[1:] - borders[:-1]).tolist(), capitals, numerals
