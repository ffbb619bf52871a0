"""The "script" splitter: words by the script that they are written in, for languages without a splitter of their own.

A word is a run of letters, marks and digits; in a script without spaces between words, each character. Marks of Indic
and other scripts are parts of words, which `\\w` of Python is not. A sentence ends with a mark of any script.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any

from marin_assets.documents.scripts import WITHOUT_SPACES
from marin_assets.stages.filter.words.splitter import MAX_REMEMBERED, MAX_REMEMBERED_CHARACTERS

ALONE = "".join(f"{chr(first)}-{chr(last)}" for first, last in WITHOUT_SPACES)
LETTERS = rf"[\p{{L}}\p{{M}}\p{{N}}_--[{ALONE}]]+"
WORD = (
    rf"https?://[^\s<>()\[\]]+"
    rf"|[\p{{L}}\p{{M}}\p{{N}}&&[{ALONE}]]"
    rf"|{LETTERS}(?:['’.·‧@־]{LETTERS}|(?<=\p{{N}})[,:٫٬]\p{{N}}+)*"
    rf"|\.{{2,}}|-{{2,}}|[^\p{{L}}\p{{M}}\p{{N}}_\s]"
)
"""A web address; a character that is a word; a word with its inner marks, or a number; a run of dots; another mark."""
SENTENCE_BREAK = r"""(?<![.!?…])[.!?…]+["'”’»)\]]*\s+(?=\S)|[。！？｡．।॥؟۔။៕።᙮]+["'”’」』）)\]]*\s*(?=\S)"""
"""The marks of Latin, Greek and Cyrillic need white space behind them, as they are in words and numbers, too."""


class ScriptSplitter:
    """A splitter by WORD and SENTENCE_BREAK."""

    def __init__(self) -> None:
        self._chunks = _WordsOfChunks()

    def words(self, text: str) -> list[str]:
        return list(chain.from_iterable(map(self._chunks.__getitem__, text.split())))

    def sentences(self, text: str) -> list[str]:
        ends = [match.end() for match in _compiled(SENTENCE_BREAK).finditer(text)]
        return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]

    def count_sentences(self, text: str) -> int:
        return 1 + sum(1 for _ in _compiled(SENTENCE_BREAK).finditer(text))


@cache
def _compiled(pattern: str) -> Any:
    import regex  # of the extra "curate"

    return regex.compile(pattern, regex.VERSION1)


class _WordsOfChunks(dict[str, tuple[str, ...]]):
    """Words of a chunk (text between white space), remembered."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        words = tuple(_compiled(WORD).findall(chunk))
        if len(chunk) <= MAX_REMEMBERED_CHARACTERS:
            if len(self) >= MAX_REMEMBERED:
                self.clear()
            self[chunk] = words
        return words
