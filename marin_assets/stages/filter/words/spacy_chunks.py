"""spaCy's tokens of chunks (texts without whitespace): its algorithm and rules, without its lexemes.

spaCy computes a dozen attributes of every new string, which takes most of its time; splitting needs none of them. The
algorithm is the one that spaCy documents ("How spaCy's tokenizer works"): remove prefixes and suffixes until a special
case or nothing removable is left, then split at infixes. Afterwards special cases are searched among the tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

Tokens = tuple[str, ...]

MAX_SEARCHED = 200_000
"""Characters that are searched for suffixes in one chunk, 0.05 s. Brackets are removed one by one and the rest is
searched again each time, which takes spaCy 1 s for 4,000 brackets; 600 brackets stay within this limit."""

MAX_ENDS = 10_000
"""Ends of words, of two letters and a dot, that are remembered."""
ONE_WORD = re.compile(r"""(["'(\[“‘]?)([^\W\d_]+)([.,;:!?)\]"'”’]?)""")
"""Letters, which no rule splits, with at most one mark at each end. spaCy removes each such mark; only a dot depends on
the letters before it."""

ENDS_IN_LETTERS = re.compile("[0-9'’°]")
"""Characters of every suffix that ends in a letter, or before it: units such as "5km", "'s", "°C"."""


class TooManyAffixes(Exception):
    """A chunk that exceeds MAX_SEARCHED: splitting it would take time quadratic in its length."""


class ChunkSplitter:
    """Splits chunks exactly as `tokenizer` does, a spaCy tokenizer without `token_match`."""

    def __init__(self, tokenizer: Any) -> None:
        from spacy.symbols import ORTH

        self._find_prefix = tokenizer.prefix_search
        self._find_suffix = tokenizer.suffix_search
        self._find_infixes = tokenizer.infix_finditer
        self._is_url = tokenizer.url_match
        self._is_suffix = lru_cache(MAX_ENDS)(lambda end: _length(tokenizer.suffix_search(end)) == 1)
        self._cases: Mapping[str, Tokens] = {
            case: tuple(token[ORTH] for token in tokens) for case, tokens in tokenizer.rules.items()
        }
        self._patterns: dict[str, list[Tokens]] = {}
        for pattern in [self._split(case, {}) for case in self._cases if self._is_searched_for(case)]:
            self._patterns.setdefault(pattern[0], []).append(pattern)
        self.neighbours = frozenset(pair for pattern in chain(*self._patterns.values()) for pair in pairwise(pattern))
        """Pairs of tokens that follow each other in a special case that is searched among tokens."""

    def split(self, chunk: str) -> Tokens:
        """Return the tokens before special cases are replaced among them. None is empty. Raises TooManyAffixes."""
        return self._split(chunk, self._cases)

    def with_cases(self, chunks: Sequence[Tokens]) -> Tokens:
        """Return the tokens of chunks with one space between them, with special cases replaced.

        A longer match comes before a shorter one, then the first. A match that overlaps an earlier one, even one that
        was not replaced, is ignored. A match that crosses chunks is found but not replaced, since it contains a space.
        """
        tokens = [token for chunk in chunks for token in chunk]
        if self._patterns.keys().isdisjoint(tokens):
            return tuple(tokens)
        spans = sorted(self._found(tokens), key=lambda span: (span[0] - span[1], span[0]))
        if not spans:
            return tuple(tokens)
        chunk_of = [i for i, chunk in enumerate(chunks) for _ in chunk]
        replaced: dict[int, tuple[int, Tokens]] = {}
        seen: set[int] = set()
        for start, end in spans:
            if start not in seen and end - 1 not in seen and chunk_of[start] == chunk_of[end - 1]:
                replaced[start] = end, self._cases["".join(tokens[start:end])]
            seen.update(range(start, end))
        return tuple(_replace(tokens, replaced))

    def _found(self, tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
        for start, token in enumerate(tokens):
            for pattern in self._patterns.get(token, ()):
                if tuple(tokens[start : start + len(pattern)]) == pattern:
                    yield start, start + len(pattern)

    def _is_searched_for(self, case: str) -> bool:
        """spaCy searches the tokens for the cases that its rules would split (its `faster_heuristics`)."""
        rules = (self._find_prefix, self._find_suffix)
        return " " in case or any(rule(case) for rule in rules) or any(True for _ in self._find_infixes(case))

    def _split(self, chunk: str, cases: Mapping[str, Tokens]) -> Tokens:
        if chunk in cases:
            return cases[chunk]
        if chunk.isalpha():
            return (chunk,)
        if (tokens := self._split_of_one_word(chunk, cases)) is not None:
            return tokens
        prefixes, middle, suffixes = self._without_affixes(chunk, cases)
        return (*prefixes, *self._middle_tokens(middle, cases), *reversed(suffixes))

    def _split_of_one_word(self, chunk: str, cases: Mapping[str, Tokens]) -> Tokens | None:
        """Return the tokens of letters with a mark before or after them, the most frequent chunks, or None."""
        match = ONE_WORD.fullmatch(chunk)
        if match is None:
            return None
        before, word, after = match.groups()
        if (before and word + after in cases) or (after and before + word in cases) or not word.isalpha():
            return None
        if after == "." and not self._is_suffix(word[-2:] + after):
            return None
        return (*filter(None, (before,)), *cases.get(word, (word,)), *filter(None, (after,)))

    def _without_affixes(self, text: str, cases: Mapping[str, Tokens]) -> tuple[Sequence[str], str, Sequence[str]]:
        prefixes: list[str] = []
        suffixes: list[str] = []
        searched = 0
        while text and text not in cases and not text.isalpha():
            searched += len(text)
            if searched > MAX_SEARCHED:
                raise TooManyAffixes
            before = self._prefix_length(text)
            if before and text[before:] in cases:
                return [*prefixes, text[:before]], text[before:], suffixes
            after = self._suffix_length(text[before:])
            if after and text[:-after] in cases:
                return prefixes, text[:-after], [*suffixes, text[-after:]]
            if not before and not after:
                break
            if before:
                prefixes.append(text[:before])
            if after and before + after <= len(text):
                suffixes.append(text[-after:])
                text = text[before:-after]
            else:
                text = text[before:]
        return prefixes, text, suffixes

    def _prefix_length(self, text: str) -> int:
        if text[0].isalpha() and "$" not in text:  # only "US$" and its like begin with a letter
            return 0
        return _length(self._find_prefix(text))

    def _suffix_length(self, text: str) -> int:
        if text[-1:].isalpha() and ENDS_IN_LETTERS.search(text) is None:
            return 0
        return _length(self._find_suffix(text))

    def _middle_tokens(self, text: str, cases: Mapping[str, Tokens]) -> Sequence[str]:
        if not text:
            return ()
        if text in cases:
            return cases[text]
        if text.isalpha() or ("." in text and self._is_url(text)):
            return (text,)
        tokens: list[str] = []
        done = 0
        for match in self._find_infixes(text):
            start, end = match.span()
            if start == 0:
                continue  # like spaCy, split nothing off at the start
            tokens += [part for part in (text[done:start], text[start:end]) if part]
            done = end
        return [*tokens, text[done:]] if done < len(text) else tokens


def _length(match: Any) -> int:
    return match.end() - match.start() if match is not None else 0


def _replace(tokens: Sequence[str], replaced: Mapping[int, tuple[int, Tokens]]) -> Iterator[str]:
    i = 0
    while i < len(tokens):
        end, case = replaced.get(i, (i + 1, (tokens[i],)))
        yield from case
        i = end
