"""Two tokenizations of one text, laid over each other: who predicts which part of it better.

The text is cut where a token of either ends. A token's loss is spread over its characters evenly, so that the losses of
the pieces add up to those of the tokens, also where the tokenizers differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Losses:
    """The losses of one text by one model: the end of each token, in characters, and its loss in nats."""

    ends: Sequence[int]
    nats: Sequence[float]


@dataclass(frozen=True)
class Span:
    """A part of the text, in characters, with what each of two models loses on it."""

    start: int
    end: int
    first: float
    second: float


def spans_of_both(first: Losses, second: Losses) -> list[Span]:
    """Return the pieces of the text, in order. They end where either tokenization has an end."""
    ends = sorted({0, *first.ends, *second.ends})
    pieces = list(pairwise(ends))
    return [
        Span(start, end, first_nats, second_nats)
        for (start, end), first_nats, second_nats in zip(
            pieces, _spread(first, pieces), _spread(second, pieces), strict=True
        )
    ]


def tokens_of(losses: Losses) -> Iterator[tuple[int, int, float]]:
    """Yield (start, end, nats) of each token. One that ends where the one before does (a character of several tokens)
    is added to it."""
    start, held = 0, 0.0
    for i, (end, nats) in enumerate(zip(losses.ends, losses.nats, strict=True)):
        held += nats
        following = losses.ends[i + 1] if i + 1 < len(losses.ends) else None
        if following == end or end <= start:
            continue
        yield start, end, held
        start, held = end, 0.0


def _spread(losses: Losses, pieces: Sequence[tuple[int, int]]) -> Iterator[float]:
    """The loss of each piece."""
    tokens = tokens_of(losses)
    token: tuple[int, int, float] | None = next(tokens, None)
    for start, end in pieces:
        while token is not None and token[1] <= start:
            token = next(tokens, None)
        if token is None or token[0] >= end:
            yield 0.0
            continue
        yield token[2] * (end - start) / (token[1] - token[0])
