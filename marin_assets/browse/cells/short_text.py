"""A value as one short text: what a cell of a table shows.

A number keeps all its digits, and is a text: a script would round 2**53 + 1, and JSON has no NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

DEEP = 8
"""Levels of a nested value that a cell shows."""
MARKS = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF), 0x2426),
}
"""Characters that cannot be seen, or that turn the direction of what follows -> the one that is shown for each."""


@dataclass(frozen=True, slots=True)
class ShortText:
    """A text, and what was cut from it."""

    text: str
    size: str = ""
    """The size of the whole value if it was cut, such as "6,000 characters"; empty if it is whole."""

    @property
    def is_cut(self) -> bool:
        return bool(self.size)


def short_text(value: Any, characters: int) -> ShortText:
    """The value, cut near the limit on characters. It takes time for the shown ones alone."""
    if isinstance(value, str):
        is_cut = len(value) > characters
        return ShortText(visible(value[:characters]), f"{len(value):,} characters" if is_cut else "")
    if isinstance(value, dict | list | tuple):
        pieces = _Pieces(characters)
        pieces.add(value, 0)
        text, kind = "".join(pieces.texts), "keys" if isinstance(value, dict) else "entries"
        is_cut = pieces.left <= 0 or pieces.too_deep
        return ShortText(visible(text[:characters]), f"{len(value):,} {kind}" if is_cut else "")
    text = scalar_text(value, characters)
    return ShortText(visible(text[:characters]), f"{len(text):,} characters" if len(text) > characters else "")


def scalar_text(value: Any, characters: int) -> str:
    """A number, a truth, nothing, bytes or a time as text. Bytes are cut at the limit."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value):,} bytes: {bytes(value[:characters]).hex(' ')}"
    return repr(value) if isinstance(value, float) else str(value)


def visible(text: str) -> str:
    """The text with a mark in place of each character that cannot be seen."""
    return text if text.isascii() and text.isprintable() else text.translate(MARKS)


class _Pieces:
    """The text of a nested value, until no characters are left."""

    def __init__(self, characters: int) -> None:
        self.texts: list[str] = []
        self.left = characters
        self.too_deep = False

    def add(self, value: Any, depth: int) -> None:
        if isinstance(value, dict | list | tuple) and depth == DEEP:
            self.too_deep = True
            self._put("…")
        elif isinstance(value, dict):
            self._put("{")
            for index, (key, item) in enumerate(value.items()):
                if self.left <= 0:
                    return
                self._put(f"{', ' * bool(index)}{str(key)[: self.left]}: ")
                self.add(item, depth + 1)
            self._put("}")
        elif isinstance(value, list | tuple):
            self._put("[")
            for index, item in enumerate(value):
                if self.left <= 0:
                    return
                self._put(", " * bool(index))
                self.add(item, depth + 1)
            self._put("]")
        else:
            text = value[: self.left + 1] if isinstance(value, str) else scalar_text(value, self.left)
            self._put(f"“{text}”" if isinstance(value, str) else text)

    def _put(self, text: str) -> None:
        self.texts.append(text)
        self.left -= len(text)
