"""The "spacy" splitter: spaCy's words and sentences (blank English, sentencizer), about seven times as fast.

datatrove splits with spaCy in the same way. spaCy tokenizes one chunk (text between whitespace) after the other, so the
tokens of a chunk are remembered. Only special cases cross chunks: spaCy searches the whole text for their token
sequences, and ":" and ")" in two chunks match ":)". Such a match is not replaced, but it takes its tokens from a match
within one chunk. So where a chunk contains a special case, neighbouring chunks whose border tokens follow each other in
a case are tokenized together.

The sentencizer's rule over tokens: a sentence begins at the first token after a terminal mark that is neither a mark
nor punctuation.

The word "IS_ALPHA", for which spaCy 3.8 sometimes raises a KeyError, is an ordinary word here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from marin_assets.stages.filter.words.fast import WORD
from marin_assets.stages.filter.words.spacy_chunks import ChunkSplitter, Tokens, TooManyAffixes
from marin_assets.stages.filter.words.splitter import MAX_REMEMBERED, MAX_REMEMBERED_CHARACTERS

RUN = re.compile(r"\S+|\s+")


class SpacySplitter:
    """A splitter by the rules of spaCy's English tokenizer and its sentencizer."""

    def __init__(self) -> None:
        import spacy
        from spacy.pipeline.sentencizer import Sentencizer

        self._chunks = ChunkSplitter(spacy.blank("en").tokenizer)
        self._marks = frozenset(Sentencizer.default_punct_chars)
        self._tokens: dict[str, Tokens] = {}
        self._steps: dict[str, tuple[bool, int, bool, int]] = {}
        self._before: dict[str, Tokens] = {}
        """Tokens of a chunk before its special cases were replaced, for chunks that have any."""

    def words(self, text: str) -> list[str]:
        chunks = text.split()
        temporary = self._learn(chunks)
        if borders := self._joins(chunks):
            chunks = _joined(chunks, borders, text)
            temporary += self._learn(chunks)
        words = list(chain.from_iterable(map(self._tokens.__getitem__, chunks)))
        self._forget(temporary)
        return words

    def sentences(self, text: str) -> list[str]:
        temporary = self._learn(text.split())
        ends, end, seen_mark = [], 0, False
        for token in self._runs(text):
            if seen_mark and self._begins(token):
                ends.append(end)
                seen_mark = False
            seen_mark = seen_mark or token in self._marks
            end = text.index(token, end) + len(token)
        self._forget(temporary)
        return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]

    def count_sentences(self, text: str) -> int:
        chunks = text.split()
        temporary = self._learn(chunks)
        plain = " ".join(chunks) == text and not self._joins(chunks)  # whitespace beyond one space is a token
        count, seen_mark = 1, False
        for chunk in chunks if plain else ():
            from_unseen, breaks_unseen, from_seen, breaks_seen = self._steps.get(chunk) or self._step(chunk)
            count += breaks_seen if seen_mark else breaks_unseen
            seen_mark = from_seen if seen_mark else from_unseen
        self._forget(temporary)
        return count if plain else len(self.sentences(text))

    def _learn(self, chunks: Iterable[str]) -> list[str]:
        """Tokenize the chunks whose tokens are unknown. Return those that are too long to be remembered."""
        unknown = set(chunks).difference(self._tokens)
        if not unknown:
            return []
        if len(self._tokens) + len(unknown) > MAX_REMEMBERED:
            self._tokens.clear()
            self._steps.clear()
            self._before.clear()
            unknown = set(chunks)
        for chunk in unknown:
            self._tokens[chunk] = self._split(chunk)
        return [chunk for chunk in unknown if len(chunk) > MAX_REMEMBERED_CHARACTERS]

    def _split(self, chunk: str) -> Tokens:
        if " " in chunk:  # several joined chunks
            return self._chunks.with_cases([self._split_alone(part) for part in chunk.split(" ")])
        before = self._split_alone(chunk)
        tokens = self._chunks.with_cases([before])
        if tokens != before:
            self._before[chunk] = before
        return tokens

    def _split_alone(self, chunk: str) -> Tokens:
        try:
            return self._chunks.split(chunk)
        except TooManyAffixes:
            return tuple(WORD.findall(chunk))

    def _forget(self, chunks: list[str]) -> None:
        for chunk in chunks:
            self._tokens.pop(chunk, None)
            self._steps.pop(chunk, None)
            self._before.pop(chunk, None)

    def _joins(self, chunks: list[str]) -> list[int]:
        """Return the indices of chunks that join the chunk before if one space separates them.

        Empty if no chunk has a special case: then joining changes nothing.
        """
        if self._before.keys().isdisjoint(chunks):
            return []
        return [i for i in range(1, len(chunks)) if self._are_neighbours(chunks[i - 1], chunks[i])]

    def _are_neighbours(self, first: str, second: str) -> bool:
        return (self._tokens_before(first)[-1], self._tokens_before(second)[0]) in self._chunks.neighbours

    def _tokens_before(self, chunk: str) -> Tokens:
        return self._before.get(chunk) or self._tokens[chunk]

    def _runs(self, text: str) -> Iterator[str]:
        """Yield all tokens. Whitespace is a token too, except for one space after another token."""
        joined: list[str] = []
        for match in RUN.finditer(text):
            run, at = match[0], match.start()
            if run == " " and joined:
                continue
            if joined and not run.isspace() and text[at - 1] == " " and self._are_neighbours(joined[-1], run):
                joined.append(run)
                continue
            if joined:
                yield from self._joined_tokens(joined)
            joined = [] if run.isspace() else [run]
            if run.isspace():
                yield run[1:] if at and run[0] == " " else run
        if joined:
            yield from self._joined_tokens(joined)

    def _joined_tokens(self, chunks: list[str]) -> Tokens:
        return self._tokens[chunks[0]] if len(chunks) == 1 else self._split(" ".join(chunks))

    def _step(self, chunk: str) -> tuple[bool, int, bool, int]:
        """Return (mark seen at the end, sentences that begin) of a chunk without a mark before it, then with one."""
        step: list[Any] = []
        for seen_mark in (False, True):
            breaks = 0
            for token in self._tokens[chunk]:
                if seen_mark and self._begins(token):
                    breaks, seen_mark = breaks + 1, False
                seen_mark = seen_mark or token in self._marks
            step += [seen_mark, breaks]
        self._steps[chunk] = (step[0], step[1], step[2], step[3])
        return self._steps[chunk]

    def _begins(self, token: str) -> bool:
        """Whether the token begins a sentence after a mark."""
        return token not in self._marks and not all(unicodedata.category(c).startswith("P") for c in token)


def _joined(chunks: list[str], borders: list[int], text: str) -> list[str]:
    """Return the chunks; neighbours that join become one chunk with spaces inside."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    joins = {i for i in borders if text[spans[i - 1][1] : spans[i][0]] == " "}
    pieces: list[list[str]] = []
    for i, chunk in enumerate(chunks):
        if i in joins:
            pieces[-1].append(chunk)
        else:
            pieces.append([chunk])
    return [" ".join(piece) for piece in pieces]
