"""A haystack: documents as pieces of text, each a sentence or a part of one, with their numbers of tokens."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from marin_assets.documents import Document, document_files, read_documents
from marin_resources.types.errors import MarinError

MOST_WORDS = 40
"""Words of a piece: a longer sentence, or a text without an end of sentence, is several pieces."""
SPARE = 4
"""The haystack has this many times the tokens of the longest context, so that questions have different texts."""
LEAST_TOKENS = 8
"""Tokens of room that stay empty."""
END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+")

TokenCounter = Callable[[list[str]], list[int]]


class NeedleError(MarinError, ValueError):
    """Needles cannot be hidden. The message has the numbers, and what to change."""


@dataclass(frozen=True, kw_only=True)
class Haystack:
    pieces: tuple[str, ...]
    tokens: tuple[int, ...]
    """The number of tokens of each piece with the space before it."""
    documents: int
    """Documents that it is made of."""
    duplicates: int
    """Documents that were left out, as an earlier one has the same text."""

    @property
    def words(self) -> list[str]:
        """Distinct lower-case words of 3 to 10 letters, in alphabetical order."""
        return sorted({word for piece in self.pieces for word in re.findall(r"\b[a-z]{3,10}\b", piece)})

    def from_piece(self, start: int, budget: int) -> list[str]:
        """Return pieces from `start` on, with `budget` tokens at most; the first follows the last. A piece that does
        not fit is skipped."""
        taken: list[str] = []
        for index in (*range(start, len(self.pieces)), *range(start)):
            if self.tokens[index] <= budget:
                budget -= self.tokens[index]
                taken.append(self.pieces[index])
            if budget < LEAST_TOKENS:
                break
        return taken


def read_haystack(path: str, count_tokens: TokenCounter, *, longest: int) -> Haystack:
    """Read documents until their pieces have SPARE times `longest` tokens. Raises NeedleError for fewer than `longest`,
    as a text that repeats itself is no haystack."""
    pieces: list[str] = []
    tokens: list[int] = []
    read = duplicates = total = 0
    seen: set[bytes] = set()
    for document in _documents(path):
        digest = hashlib.blake2b(document.text.encode(errors="replace"), digest_size=16).digest()
        if digest in seen:
            duplicates += 1
            continue
        seen.add(digest)
        read += 1
        if parts := pieces_of(document.text):
            counts = count_tokens([f" {part}" for part in parts])
            pieces += parts
            tokens += counts
            total += sum(counts)
        if total >= SPARE * longest:
            break
    if total < longest:
        raise NeedleError(
            f"The documents in {path!r} have {total} tokens without duplicates, expected {longest} at least, the "
            "longest context. Pass more documents, or shorter lengths."
        )
    return Haystack(pieces=tuple(pieces), tokens=tuple(tokens), documents=read, duplicates=duplicates)


def pieces_of(text: str) -> list[str]:
    """Split a text at its ends of sentences, and what is longer than MOST_WORDS there. White space is one space."""
    sentences = (sentence.split() for sentence in END_OF_SENTENCE.split(text))
    return [
        " ".join(words[start : start + MOST_WORDS]) for words in sentences for start in range(0, len(words), MOST_WORDS)
    ]


def _documents(path: str) -> Iterator[Document]:
    for file in document_files(path).shards:
        yield from read_documents(file.path)
