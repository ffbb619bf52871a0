"""Sums over texts, and what they say of a model: bits per byte, perplexity, and their errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

NATS_PER_BIT = math.log(2)


@dataclass(kw_only=True)
class Sums:
    """Of texts: of each, its bytes in UTF-8, its tokens, and its loss in nats."""

    texts: int = 0
    bytes: int = 0
    tokens: int = 0
    nats: float = 0.0
    nats2: float = 0.0
    bytes2: int = 0
    nats_by_bytes: float = 0.0
    """Sums of squares and of products, for the error of a ratio."""
    without_tokens: int = 0
    """Further texts, such as "", which have nothing to predict."""

    def add(self, *, bytes_: int, tokens: int, nats: float) -> None:
        self.texts += 1
        self.bytes += bytes_
        self.tokens += tokens
        self.nats += nats
        self.nats2 += nats * nats
        self.bytes2 += bytes_ * bytes_
        self.nats_by_bytes += nats * bytes_

    def numbers(self) -> dict[str, float | int]:
        """Return texts, bytes, tokens, bits_per_byte with its standard error, and perplexity (of a token).

        The error is that of a ratio of two sums over texts (Cochran 1977, 6.3): texts are independent, tokens of one
        text are not. It is left out where there is one text.
        """
        bits_per_byte = self.nats / NATS_PER_BIT / self.bytes
        found: dict[str, float | int] = {
            "texts": self.texts,
            "bytes": self.bytes,
            "tokens": self.tokens,
            "bits_per_byte": bits_per_byte,
            "perplexity": math.exp(min(self.nats / self.tokens, 700.0)),
        }
        if self.texts > 1:
            found["bits_per_byte_stderr"] = self._error()
        return found

    def _error(self) -> float:
        ratio = self.nats / self.bytes
        squares = self.nats2 - 2 * ratio * self.nats_by_bytes + ratio * ratio * self.bytes2
        return math.sqrt(max(squares, 0.0) * self.texts / (self.texts - 1)) / self.bytes / NATS_PER_BIT


def total(of: Iterable[Sums]) -> Sums:
    """The sums of all."""
    found = Sums()
    for one in of:
        for name, value in vars(one).items():
            setattr(found, name, getattr(found, name) + value)
    return found
