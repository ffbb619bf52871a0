"""Batches of texts of similar length, in a few fixed sizes: XLA compiles a program for each size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

SHORTEST = 32
BATCH_TOKENS = 4096
"""Tokens of a batch, with its padding."""
ROWS = 8
"""The rows of a batch are a multiple, so that as many devices can share it."""


@dataclass(frozen=True)
class Batch:
    """Texts of one padded length. The number of rows follows from the length; rows beyond `places` are padding."""

    places: list[int]
    """The place of each text in the sequence."""
    tokens: np.ndarray
    """(rows, length) in int32."""
    mask: np.ndarray
    """(rows, length) in int32: 1 for a token, 0 for padding."""


def padded_lengths(most: int) -> list[int]:
    """Return the lengths to which texts are padded: 32, 48, 64, 96, … and `most`, so that at most a third is padding.

    >>> padded_lengths(128)
    [32, 48, 64, 96, 128]
    """
    lengths, length = [], SHORTEST
    while length < most:
        lengths += [length, length * 3 // 2]
        length *= 2
    return [*(length for length in lengths if length < most), most]


def rows_of(length: int) -> int:
    """Return the rows of a batch of this padded length: a multiple of ROWS."""
    return max(BATCH_TOKENS // length // ROWS * ROWS, ROWS)


def batches_of(texts: Sequence[Sequence[int]], most: int) -> Iterator[Batch]:
    """Yield batches of all texts, the shortest first. No text has more than `most` tokens."""
    by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    begin = 0
    for length in padded_lengths(most):
        end = begin
        while end < len(by_length) and len(texts[by_length[end]]) <= length:
            end += 1
        rows = rows_of(length)
        for start in range(begin, end, rows):
            places = by_length[start : min(start + rows, end)]
            yield Batch(places, *padded([texts[place] for place in places], rows, length))
        begin = end


def padded(texts: Sequence[Sequence[int]], rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return tokens and mask of texts, (rows, length) each, padded on the right and below."""
    import numpy as np

    tokens, mask = np.zeros((rows, length), np.int32), np.zeros((rows, length), np.int32)
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = text
        mask[row, : len(text)] = 1
    return tokens, mask
