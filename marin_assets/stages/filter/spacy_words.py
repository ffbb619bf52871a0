"""spaCy's words and sentences (blank English, sentencizer), as datatrove splits, some seven times as fast.

spaCy tokenizes from whitespace to whitespace, one chunk after the other, so a chunk's tokens are remembered. What
crosses chunks are its special cases: it looks for their token sequences in the whole text, and ":" and ")" apart look
like ":)" to it. It replaces nothing then, but a sequence that crosses takes its tokens away from one that does not. So
where a chunk has such a case, the chunks whose border tokens are neighbours in a case are tokenized together.

The sentencizer's rule over tokens: a sentence begins at the first token after a terminal mark that is neither a mark
nor punctuation.

The word "IS_ALPHA", at which spaCy 3.8 itself now and then raises a KeyError, is a word here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from marin_assets.stages.filter.spacy_chunks import ChunkSplitter, Tokens, TooManyAffixes
from marin_assets.stages.filter.words import MAX_REMEMBERED, MAX_REMEMBERED_CHARACTERS, WORD

RUN = re.compile(r"\S+|\s+")


class SpacySplitter:
    def __init__(self) -> None:
        import spacy
        from spacy.pipeline.sentencizer import Sentencizer

        self._chunks = ChunkSplitter(spacy.blank("en").tokenizer)
        self._marks = frozenset(Sentencizer.default_punct_chars)
        self._tokens: dict[str, Tokens] = {}
        self._steps: dict[str, tuple[bool, int, bool, int]] = {}
        self._before: dict[str, Tokens] = {}
        """Tokens of a chunk before a special case was found among them, where one was."""

    def words(self, text: str) -> list[str]:
        chunks = text.split()
        passing = self._learn(chunks)
        if borders := self._joins(chunks):
            chunks = _joined(chunks, borders, text)
            passing += self._learn(chunks)
        words = list(chain.from_iterable(map(self._tokens.__getitem__, chunks)))
        self._forget(passing)
        return words

    def sentences(self, text: str) -> list[str]:
        passing = self._learn(text.split())
        ends, end, seen_mark = [], 0, False
        for token in self._runs(text):
            if seen_mark and self._begins(token):
                ends.append(end)
                seen_mark = False
            seen_mark = seen_mark or token in self._marks
            end = text.index(token, end) + len(token)
        self._forget(passing)
        return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]

    def count_sentences(self, text: str) -> int:
        chunks = text.split()
        passing = self._learn(chunks)
        plain = " ".join(chunks) == text and not self._joins(chunks)  # whitespace beyond one space is a token
        count, seen_mark = 1, False
        for chunk in chunks if plain else ():
            from_unseen, breaks_unseen, from_seen, breaks_seen = self._steps.get(chunk) or self._step(chunk)
            count += breaks_seen if seen_mark else breaks_unseen
            seen_mark = from_seen if seen_mark else from_unseen
        self._forget(passing)
        return count if plain else len(self.sentences(text))

    def _learn(self, chunks: Iterable[str]) -> list[str]:
        """Have the tokens of every chunk; returns the chunks that are too long to be remembered."""
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
        if " " in chunk:  # several that join
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

    def _forget(self, passing: list[str]) -> None:
        for chunk in passing:
            self._tokens.pop(chunk, None)
            self._steps.pop(chunk, None)
            self._before.pop(chunk, None)

    def _joins(self, chunks: list[str]) -> list[int]:
        """Where a chunk joins the one before if there is one space between them; none where that changes nothing."""
        if self._before.keys().isdisjoint(chunks):
            return []
        return [i for i in range(1, len(chunks)) if self._are_neighbours(chunks[i - 1], chunks[i])]

    def _are_neighbours(self, first: str, second: str) -> bool:
        return (self._tokens_before(first)[-1], self._tokens_before(second)[0]) in self._chunks.neighbours

    def _tokens_before(self, chunk: str) -> Tokens:
        return self._before.get(chunk) or self._tokens[chunk]

    def _runs(self, text: str) -> Iterator[str]:
        """Tokens, with those that are whitespace: all of it beyond one space."""
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
        """What a chunk does to "a mark was seen", and how many sentences begin in it: for no, for yes."""
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
        """Whether the token begins a sentence if a mark came before."""
        return token not in self._marks and not all(unicodedata.category(c).startswith("P") for c in token)


def _joined(chunks: list[str], borders: list[int], text: str) -> list[str]:
    """The chunks, those that join as one with spaces within."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    joins = {i for i in borders if text[spans[i - 1][1] : spans[i][0]] == " "}
    pieces: list[list[str]] = []
    for i, chunk in enumerate(chunks):
        if i in joins:
            pieces[-1].append(chunk)
        else:
            pieces.append([chunk])
    return [" ".join(piece) for piece in pieces]
