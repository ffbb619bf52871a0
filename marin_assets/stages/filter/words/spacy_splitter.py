"""The "spacy" splitter: spaCy's words and sentences (blank English, sentencizer), many times as fast.

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
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, compress, pairwise
from typing import Any, TypeVar

from marin_assets.stages.filter.words import splitter
from marin_assets.stages.filter.words.fast import WORD
from marin_assets.stages.filter.words.spacy_chunks import ChunkSplitter, Tokens, TooManyAffixes

V = TypeVar("V")

RUN = re.compile(r"\S+|\s+")
Step = tuple[bool, int, bool, int]
"""Summary of a piece of a text: mark seen at its end, and sentences that begin, without a mark before it; then the two
with one."""


class SpacySplitter:
    """A splitter by the rules of spaCy's English tokenizer and its sentencizer."""

    def __init__(self) -> None:
        import spacy
        from spacy.pipeline.sentencizer import Sentencizer

        self._chunks = ChunkSplitter(spacy.blank("en").tokenizer)
        self._marks = frozenset(Sentencizer.default_punct_chars)
        mark = re.compile(f"[{re.escape(''.join(self._marks))}]")
        self._tokens: _Remembered[Tokens] = _Remembered(self._split)
        self._has_mark: _Remembered[bool] = _Remembered(lambda piece: mark.search(piece) is not None)
        self._steps: _Remembered[Step] = _Remembered(self._step)
        self._borders: _Remembered[tuple[str, str]] = _Remembered(self._border)
        self._before: dict[str, Tokens] = {}
        """Tokens of a chunk before its special cases were replaced, for chunks that have any."""

    def words(self, text: str) -> list[str]:
        chunks = text.split()
        words = list(chain.from_iterable(map(self._tokens.__getitem__, chunks)))
        if borders := self._joins(chunks):
            chunks = _joined(chunks, borders, text)
            words = list(chain.from_iterable(map(self._tokens.__getitem__, chunks)))
        self._forget()
        return words

    def sentences(self, text: str) -> list[str]:
        ends, end, seen_mark = [], 0, False
        for token in self._runs(text):
            if seen_mark and self._begins(token):
                ends.append(end)
                seen_mark = False
            seen_mark = seen_mark or token in self._marks
            end = text.index(token, end) + len(token)
        self._forget()
        return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]

    def count_sentences(self, text: str) -> int:
        chunks = text.split()
        deque(map(self._tokens.__getitem__, chunks), maxlen=0)  # learns which of them have special cases
        pieces = text.split(" ")
        if not pieces[-1]:
            pieces.pop()  # one space at the end is no token
        count = self._count_of_pieces(self._joined_pieces(pieces) if self._joins(chunks) else pieces)
        self._forget()
        return count

    def _joined_pieces(self, pieces: list[str]) -> list[str]:
        """Return the pieces; neighbours that join become one piece with spaces inside."""
        joins = [
            (last, first) in self._chunks.neighbours for (_, last), (first, _) in pairwise(self._borders_of(pieces))
        ]
        joined = [[pieces[0]]]
        for piece, join in zip(pieces[1:], joins, strict=True):
            if join:
                joined[-1].append(piece)
            else:
                joined.append([piece])
        return [" ".join(several) for several in joined]

    def _borders_of(self, pieces: list[str]) -> Iterator[tuple[str, str]]:
        return map(self._borders.__getitem__, pieces)

    def _count_of_pieces(self, pieces: list[str]) -> int:
        """Count the sentences of a text from its pieces between single spaces.

        Whitespace beyond one space is a token: it is in a piece, or an empty piece.
        """
        count, at = 1, 0
        for marked in compress(range(len(pieces)), map(self._has_mark.__getitem__, pieces)):
            if marked < at:
                continue
            at, seen_mark = marked, False
            while at < len(pieces) and (seen_mark or at == marked):
                from_unseen, breaks_unseen, from_seen, breaks_seen = self._steps[pieces[at]]
                count += breaks_seen if seen_mark else breaks_unseen
                seen_mark = from_seen if seen_mark else from_unseen
                at += 1
        return count

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

    def _forget(self) -> None:
        """Forget long chunks, and all chunks if they are too many."""
        for chunk in self._tokens.forget():
            self._before.pop(chunk, None)
        self._has_mark.forget()
        self._steps.forget()
        self._borders.forget()

    def _joins(self, chunks: list[str]) -> list[int]:
        """Return the indices of chunks that join the chunk before if one space separates them.

        Empty if no chunk has a special case: then joining changes nothing.
        """
        if self._before.keys().isdisjoint(chunks):
            return []
        neighbours, borders = self._chunks.neighbours, pairwise(self._borders_of(chunks))
        return [i for i, ((_, last), (first, _)) in enumerate(borders, start=1) if (last, first) in neighbours]

    def _border(self, piece: str) -> tuple[str, str]:
        """Return the first and the last token of a piece before special cases are replaced, "" for whitespace."""
        chunks = piece.split()
        if not chunks:
            return "", ""
        first = "" if piece[0].isspace() else self._tokens_before(chunks[0])[0]
        return first, "" if piece[-1].isspace() else self._tokens_before(chunks[-1])[-1]

    def _are_neighbours(self, first: str, second: str) -> bool:
        return (self._borders[first][1], self._borders[second][0]) in self._chunks.neighbours

    def _tokens_before(self, chunk: str) -> Tokens:
        tokens = self._tokens[chunk]  # which learns its special cases
        return self._before.get(chunk, tokens)

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

    def _step(self, piece: str) -> Step:
        step: list[Any] = []
        for seen_mark in (False, True):
            breaks = 0
            for token in list(self._runs(piece)) or [" "]:
                if seen_mark and self._begins(token):
                    breaks, seen_mark = breaks + 1, False
                seen_mark = seen_mark or token in self._marks
            step += [seen_mark, breaks]
        return step[0], step[1], step[2], step[3]

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


class _Remembered(dict[str, V]):
    """Values by text, computed on their first access. Call `forget` between documents.

    The table has two generations: a full one becomes the older, from which values that are accessed again come back.
    So frequent texts are not computed again.
    """

    def __init__(self, compute: Callable[[str], V]) -> None:
        super().__init__()
        self._compute = compute
        self._older: dict[str, V] = {}
        self._long: list[str] = []

    def __missing__(self, text: str) -> V:
        value = self[text] = self._older[text] if text in self._older else self._compute(text)
        if len(text) > splitter.MAX_REMEMBERED_CHARACTERS:
            self._long.append(text)
        return value

    def forget(self) -> list[str]:
        """Forget long texts, and the older generation if the table is full. Return what was forgotten."""
        for text in self._long:
            del self[text]
        forgotten, self._long = self._long, []
        if len(self) > splitter.MAX_REMEMBERED // 2:
            forgotten += [text for text in self._older if text not in self]
            self._older = dict(self)
            self.clear()
        return forgotten
