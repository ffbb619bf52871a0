"""Runs of a number of words in a text, with their hashes and places.

A word is a run of characters between white space; in scripts without spaces between words, each character. White space
between words does not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from marin_assets.documents.scripts import WITHOUT_SPACES

ALONE = "".join(f"{chr(first)}-{chr(last)}" for first, last in WITHOUT_SPACES)
WORD = re.compile(rf"[{ALONE}]|[^\s{ALONE}]+")
Span = tuple[int, int]
"""[start, end) of characters."""


def words_of(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """Return the places of the words in a text, or in a part of it."""
    return [match.span() for match in WORD.finditer(text, start, len(text) if end is None else end)]


def run_digests(text: str, words: Sequence[Span], length: int, ignore_case: bool) -> list[bytes]:
    """Return the hash (16 bytes of xxh3) of each run of `length` words, one for each word that begins one."""
    from xxhash import xxh3_128_digest

    if len(words) < length:
        return []
    parts = [text[a:b].casefold() if ignore_case else text[a:b] for a, b in words]
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    joined = memoryview(b" ".join(encoded))
    starts, at = [], 0
    for part in encoded:
        starts.append(at)
        at += len(part) + 1
    starts.append(at)
    return [xxh3_128_digest(joined[start : end - 1]) for start, end in zip(starts, starts[length:], strict=False)]


def covered(repeated: Sequence[bool], length: int) -> list[Span]:
    """Return the words that the repeated runs cover: [first, end) of each stretch, as indices of words.

    `repeated` may be shorter than the number of runs: the rest are not repeated.
    """
    stretches: list[Span] = []
    for first, is_repeated in enumerate(repeated):
        if not is_repeated:
            continue
        if stretches and first <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], first + length)
        else:
            stretches.append((first, first + length))
    return stretches
