"""Words and sentences of a text: `fast`, one regular expression, or `spacy`, spaCy's rules for English.

The splitter is part of what a threshold means. The thresholds in print were set with spaCy's or NLTK's words; `fast`
gives most of the same verdicts at many times the speed.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from typing import Protocol

LETTERS = r"[\w\u0300-\u036f]+"
"""Letters and digits, and the accents of decomposed Latin letters."""
WORD = re.compile(
    rf"https?://[^\s<>()\[\]]+"
    rf"|{LETTERS}(?:['’.@(\[]{LETTERS}|(?<=\d)[,:]\d+)*"
    rf"|\.{{2,}}|-{{2,}}|[^\w\s]"
)
"""An address of the web; a word with its inner apostrophes, dots and opening brackets, or a number with its inner
commas and colons; dots or hyphens in a row; any other mark. What spaCy leaves together, as far as one look can tell: of
texts with code and Markdown, the least like prose, Gopher's verdicts are spaCy's on 95 to 99 %."""
SENTENCE_BREAK = re.compile(r"""(?<![.!?…])[.!?…]+["'”’)\]]*\s+(?=\S)""")
"""The look behind keeps a long run of dots linear: a search can begin at its first dot only."""
MAX_REMEMBERED = 100_000
"""Chunks, text without whitespace, of which a splitter remembers the words; then all are forgotten. About 40 MB."""
MAX_REMEMBERED_CHARACTERS = 64


class SplitterError(ValueError):
    """A splitter that there is not."""


class Splitter(Protocol):
    def words(self, text: str) -> list[str]:
        """Words, and marks as words of their own; none is empty or has whitespace."""

    def sentences(self, text: str) -> list[str]:
        """Pieces that together are the text, one for each sentence and at least one."""

    def count_sentences(self, text: str) -> int:
        """How many `sentences` there are, without making them."""


class FastSplitter:
    """Words and sentences by one regular expression each."""

    def __init__(self) -> None:
        self._chunks = WordsOfChunks()

    def words(self, text: str) -> list[str]:
        return list(chain.from_iterable(map(self._chunks.__getitem__, text.split())))

    def sentences(self, text: str) -> list[str]:
        ends = [match.end() for match in SENTENCE_BREAK.finditer(text)]
        return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]

    def count_sentences(self, text: str) -> int:
        return 1 + sum(1 for _ in SENTENCE_BREAK.finditer(text))


class WordsOfChunks(dict[str, tuple[str, ...]]):
    """The words of what stands between whitespace, remembered: three times as fast as looking again."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        words = tuple(WORD.findall(chunk))
        if len(chunk) <= MAX_REMEMBERED_CHARACTERS:
            if len(self) >= MAX_REMEMBERED:
                self.clear()
            self[chunk] = words
        return words


@cache
def splitter_named(name: str) -> Splitter:
    """The process's splitter of this name: spaCy is loaded once. Raises SplitterError for a name that has none."""
    if name == "fast":
        return FastSplitter()
    if name == "spacy":
        from marin_assets.stages.filter.spacy_words import SpacySplitter

        return SpacySplitter()
    raise SplitterError(f"The word splitter is {name!r}, expected 'fast' or 'spacy'.")
