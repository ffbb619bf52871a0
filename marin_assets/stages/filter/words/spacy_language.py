"""The "spacy" splitter of other languages than English: spaCy's words, with each chunk between white space split once.

`spacy_languages.json` has spaCy's code for each tag of a language that datatrove 0.10 splits by spaCy's rules for it.
Chinese, Japanese and Vietnamese are left out: spaCy gives them to other packages.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from importlib.resources import files
from itertools import chain, pairwise
from typing import Any

from marin_assets.stages.filter.words.fast import WORD
from marin_assets.stages.filter.words.splitter import MAX_REMEMBERED, MAX_REMEMBERED_CHARACTERS

MAX_CHUNK, MAX_MARKS = 500, 120
"""Characters of the longest chunk that spaCy splits, and marks of the one with most: marks at the ends take time
quadratic in their number, 5 ms for 120 brackets. A longer one, or one of more marks, is split as by "fast"."""
MARKS = re.compile(r"[^\w]|_")


@cache
def spacy_languages() -> dict[str, str]:
    """Tag of a language, such as "deu_Latn" -> spaCy's code."""
    text = files("marin_assets.stages.filter.words").joinpath("spacy_languages.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


class SpacyLanguageSplitter:
    """A splitter by spaCy's tokenizer of a language, and the rule of its sentencizer."""

    def __init__(self, code: str) -> None:
        import spacy
        from spacy.pipeline.sentencizer import Sentencizer

        self._language = spacy.blank(code)
        self._chunks = _WordsOfChunks(self._language.tokenizer)
        self._marks = frozenset(Sentencizer.default_punct_chars)

    def words(self, text: str) -> list[str]:
        with self._language.memory_zone():  # without one, spaCy keeps every string
            return list(chain.from_iterable(map(self._chunks.__getitem__, text.split())))

    def sentences(self, text: str) -> list[str]:
        starts, at, after_mark = [0], 0, False
        for word in self.words(text):
            at = text.index(word, at)
            if after_mark and self._begins(word):
                starts.append(at)
                after_mark = False
            after_mark = after_mark or word in self._marks
            at += len(word)
        return [text[start:end] for start, end in pairwise([*starts, len(text)])]

    def count_sentences(self, text: str) -> int:
        return len(self.sentences(text))

    def _begins(self, word: str) -> bool:
        """Whether the word begins a sentence after a mark."""
        return word not in self._marks and not all(unicodedata.category(c).startswith("P") for c in word)


class _WordsOfChunks(dict[str, tuple[str, ...]]):
    """The words of a chunk, remembered."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if len(chunk) > MAX_CHUNK or len(MARKS.findall(chunk)) > MAX_MARKS:
            return tuple(WORD.findall(chunk))
        words = tuple(token.text for token in self._tokenizer(chunk))
        if len(chunk) <= MAX_REMEMBERED_CHARACTERS:
            if len(self) >= MAX_REMEMBERED:
                self.clear()
            self[chunk] = words
        return words
