"""Sums over texts, and the measures of a model that follow: bits per byte, perplexity, and their errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

NATS_PER_BIT = math.log(2)


@dataclass(kw_only=True)
class Sums:
    """Sums over texts: of their bytes in UTF-8, of their tokens, and of their losses in nats."""

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
        text are not. It is left out for a single text.
        """
        bits_per_byte = self.nats / NATS_PER_BIT / self.bytes
        numbers: dict[str, float | int] = {
            "texts": self.texts,
            "bytes": self.bytes,
            "tokens": self.tokens,
            "bits_per_byte": bits_per_byte,
            "perplexity": math.exp(min(self.nats / self.tokens, 700.0)),
        }
        if self.texts > 1:
            numbers["bits_per_byte_stderr"] = self._error()
        return numbers

    def _error(self) -> float:
        ratio = self.nats / self.bytes
        squares = self.nats2 - 2 * ratio * self.nats_by_bytes + ratio * ratio * self.bytes2
        return math.sqrt(max(squares, 0.0) * self.texts / (self.texts - 1)) / self.bytes / NATS_PER_BIT


def total(of: Iterable[Sums]) -> Sums:
    """The sums of all."""
    totals = Sums()
    for sums in of:
        for name, value in vars(sums).items():
            setattr(totals, name, getattr(totals, name) + value)
    return totals
