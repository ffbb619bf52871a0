"""Words as DCLM counts them, by Unicode's word borders and between white space."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from typing import Any

from marin_assets.stages.filter.words.splitter import MAX_REMEMBERED, MAX_REMEMBERED_CHARACTERS

NARROW_SPACE = "\u202f"
"""The only white space that is a part of a word, as in 10 000."""
CHUNK = re.compile(rf"[\S{NARROW_SPACE}]+")
TOKEN = re.compile(r"(?:(?<=[ \t\n\r\v\f\0])|\A)[^\W_]")
"""The beginning of a token of fastText that begins with a letter or digit: fastText splits at ASCII's white space."""


def unicode_words(text: str) -> list[str]:
    """Return the words between Unicode's word borders (UAX #29) that begin with a letter or digit, in order."""
    chunks = CHUNK.findall(text) if NARROW_SPACE in text else text.split()
    return list(chain.from_iterable(map(_REMEMBERED.__getitem__, chunks)))


def count_tokens(text: str) -> int:
    """Return the number of fastText's tokens that begin with a letter or digit."""
    return sum(1 for _ in TOKEN.finditer(text))


@cache
def _borders() -> Any:
    import regex  # of the extra "curate"

    return regex.compile(r"\b", regex.WORD | regex.VERSION1)


@cache
def _joined() -> Any:
    """Characters that regex joins to a letter behind them, and Unicode does not: an apostrophe before a vowel, a mark
    that combines with nothing."""
    import regex

    return regex.compile(r"\A['’\p{M}]+", regex.VERSION1)


class _WordsOfChunks(dict[str, tuple[str, ...]]):
    """The words of a chunk (text between white space), remembered."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if chunk.isascii() and chunk.isalnum():
            words: tuple[str, ...] = (chunk,)
        else:
            parts = _borders().split(chunk)
            words = tuple(word for part in parts if part and (word := _without_joined(part))[:1].isalnum())
        if len(chunk) <= MAX_REMEMBERED_CHARACTERS:
            if len(self) >= MAX_REMEMBERED:
                self.clear()
            self[chunk] = words
        return words


def _without_joined(part: str) -> str:
    return part if part[0].isalnum() else _joined().sub("", part)


_REMEMBERED = _WordsOfChunks()
