"""Union of spans [start, end) of characters, and their removal from a text."""

from __future__ import annotations

from collections.abc import Iterable

Spans = list[tuple[int, int]]


def union(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return the same characters as ordered spans that neither overlap nor touch."""
    merged: Spans = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:
            merged.append((start, end))
    return merged


def without(text: str, spans: Spans) -> str:
    """Return `text` without `spans`, which are a union. Raises ValueError for a span beyond the text."""
    if spans and not 0 <= spans[0][0] <= spans[-1][1] <= len(text):
        raise ValueError(f"cuts characters {spans[0][0]} to {spans[-1][1]} of a text of {len(text)}")
    borders = [0, *(border for span in spans for border in span), len(text)]
    return "".join(text[a:b] for a, b in zip(borders[::2], borders[1::2], strict=True))
