"""The tokens of each row of a token cache, by its offsets alone; of many rows those that a seed draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.browse.places import Place, Places
from marin_assets.browse.rows.sample import draw
from marin_assets.browse.stored.token_rows import ERRORS, MOST_ROWS, Part, check_array, fields_of, parts_of, unreadable
from marin_assets.documents.caches.token_cache import open_array
from marin_resources.storage.paths import join

MOST_WHOLE = 1_000_000
"""Rows of a cache whose offsets are all read: 8 MB. Of more rows a sample is read."""


@dataclass(frozen=True, kw_only=True)
class TokenLengths:
    """Tokens of rows."""

    field: str
    lengths: list[int]
    rows: list[int]
    """The number of each row."""
    total: int
    """Rows of the cache."""


def token_lengths(places: Places, place: Place, *, count: int, seed: int) -> TokenLengths:
    """The tokens of all rows of a split or a shard, or of `count` rows if it has more than MOST_WHOLE.

    Raises BrowseError.
    """
    parts = parts_of(places, place)
    sizes = [part.rows for part in parts]
    field = fields_of(parts[0])[0] if parts else ""
    lengths, rows, first = list[int](), list[int](), 0
    chosen = None if sum(sizes) <= MOST_WHOLE else draw(sizes, count, seed)
    for index, part in enumerate(parts):
        numbers = range(part.rows) if chosen is None else [number for file, number in chosen if file == index]
        try:
            lengths += _lengths_of(places, part, field, numbers)
        except ERRORS as error:
            raise unreadable(part.path, error) from error
        rows += [first + number for number in numbers]
        first += part.rows
    return TokenLengths(field=field, lengths=lengths, rows=rows, total=sum(sizes))


def _lengths_of(places: Places, part: Part, field: str, numbers: Sequence[int]) -> list[int]:
    """The tokens of these rows of a part."""
    if not numbers:
        return []
    path = join(part.path, field, "offsets")
    check_array(places, path)
    offsets = open_array(path)
    stored = int(offsets[0].read().result())
    if part.rows > stored:
        raise ValueError(f"{field} has {stored} rows, and the ledger {part.rows}")
    ends = _read(offsets, [number + 1 for number in numbers])
    starts = _read(offsets, list(numbers))  # the first offset is the number of rows
    lengths = [end - (start if number else 0) for number, start, end in zip(numbers, starts, ends, strict=True)]
    if not all(0 <= length <= MOST_ROWS for length in lengths):
        raise ValueError(f"the offsets of {field} are not in order")
    return lengths


def _read(offsets: Any, numbers: list[int]) -> list[int]:
    if numbers[-1] - numbers[0] + 1 == len(numbers):
        return [int(value) for value in offsets[numbers[0] : numbers[-1] + 1].read().result()]
    return [int(value) for value in offsets[numbers].read().result()]
