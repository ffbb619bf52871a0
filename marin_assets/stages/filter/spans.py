"""A text from which parts are cut one after another, with the places of what is left in the first text."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]
"""[start, end) of characters."""


class CutText:
    """A text, and the spans of the first text that are left of it."""

    def __init__(self, text: str, spans: list[Span] | None = None, length: int | None = None) -> None:
        self.text = text
        self._spans = [(0, len(text))] if spans is None else spans
        self._length = len(text) if length is None else length

    def without(self, cut: list[Span]) -> CutText:
        """Return the text without `cut`, spans of this text in order."""
        if not cut:
            return self
        remaining = complement(cut, len(self.text))
        text = "".join([self.text[a:b] for a, b in remaining])
        return CutText(text, _within(self._spans, remaining), self._length)

    def with_lines(self, kept: Iterable[bool]) -> CutText:
        """Return the text of the lines that are `kept`, one bool for each line between line feeds."""
        cut: list[Span] = []
        at, first = 0, True
        for line, keep in zip(self.text.split("\n"), kept, strict=True):
            start, end = max(at - 1, 0), at + len(line)  # with the line feed before it
            if not keep:
                cut.append((start, end))
            elif first:
                if start < at:
                    cut.append((start, at))
                first = False
            at = end + 1
        return self.without(cut)

    def stripped(self) -> CutText:
        """Return the text without whitespace at its ends."""
        start, end = len(self.text) - len(self.text.lstrip()), len(self.text.rstrip())
        return self.without([span for span in ((0, start), (max(start, end), len(self.text))) if span[0] < span[1]])

    @property
    def cut(self) -> tuple[Span, ...]:
        """The spans of the first text that were cut."""
        return tuple(complement(self._spans, self._length))


def complement(spans: Iterable[Span], length: int) -> list[Span]:
    """Return the spans of a text of `length` characters that `spans`, in order, do not cover."""
    borders = [0, *(border for span in spans for border in span), length]
    return [(a, b) for a, b in zip(borders[::2], borders[1::2], strict=True) if a < b]


def _within(kept: list[Span], remaining: list[Span]) -> list[Span]:
    """Return `remaining` as spans of the document, given as spans of the text that `kept` leaves of it."""
    spans: list[Span] = []
    at = i = 0
    for a, b in kept:
        while i < len(remaining) and remaining[i][0] < at + b - a:
            first, last = max(remaining[i][0], at), min(remaining[i][1], at + b - a)
            spans.append((a + first - at, a + last - at))
            if remaining[i][1] > last:
                break
            i += 1
        at += b - a
    return spans
