"""A row as lines: each value with its key, indented below the key that has it; long texts, and what is too much, cut.

A value inside a row is addressed by a JSON pointer (RFC 6901), such as /metadata/url.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.browse.cells.short_text import short_text, visible
from marin_assets.browse.errors import NotThereError

MOST_LINES = 400
MOST_IN_ONE = 100
"""Keys or entries of one value that are shown."""
DEEP = 12
ROW_CHARACTERS = 200_000
"""Characters of all values of a row together. Each may take five bytes in a page."""
VALUE_CHARACTERS = 20_000
LATER_CHARACTERS = 200
"""Characters of a value when those of the row are spent."""
KEY_CHARACTERS = 80
POINTER_CHARACTERS = 1000
NAMED = 20
"""Cut values that are named above a row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A key and its value; one with values of its own has no text."""

    key: str
    depth: int
    text: str | None
    size: str
    """The size of the whole value if it is cut or has values of its own."""
    is_cut: bool
    pointer: str | None
    """The JSON pointer to it; None if that is too long."""
    is_text: bool


class Tree:
    """The lines of a row."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.lines: list[Line] = []
        self._cut: list[str] = []
        self._left = ROW_CHARACTERS
        self._add_all(row, "", 0)

    @property
    def cuts(self) -> list[str]:
        """A phrase for each value that is not shown whole."""
        more = [f"and {len(self._cut) - NAMED:,} more"] if len(self._cut) > NAMED else []
        return self._cut[:NAMED] + more

    def _add_all(self, value: Mapping[str, Any] | list[Any], above: str, depth: int) -> None:
        items = list(value.items()) if isinstance(value, Mapping) else list(enumerate(value))
        shown = 0
        for key, item in items[:MOST_IN_ONE]:
            if len(self.lines) >= MOST_LINES:
                break
            self._add(str(key), item, f"{above}/{escaped(str(key))}", depth)
            shown += 1
        if shown < len(items):
            kind = "keys" if isinstance(value, Mapping) else "entries"
            self._cut.append(f"{len(items) - shown:,} of {len(items):,} {kind} of {named(above) or 'the row'}")

    def _add(self, key: str, value: Any, pointer: str, depth: int) -> None:
        address = pointer if len(pointer) <= POINTER_CHARACTERS else None
        short_key = visible(key[:KEY_CHARACTERS]) + "…" * (len(key) > KEY_CHARACTERS)
        is_nested = isinstance(value, Mapping | list | tuple) and len(value) > 0 and depth < DEEP
        if is_nested:
            kind = "keys" if isinstance(value, Mapping) else "entries"
            size, text, is_cut = f"{len(value):,} {kind}", None, False
        else:
            short = short_text(value, VALUE_CHARACTERS if self._left > 0 else LATER_CHARACTERS)
            size, text, is_cut = short.size, short.text, short.is_cut
            self._left -= len(short.text)
            if is_cut:
                self._cut.append(f"{named(pointer)} ({size})")
        line = Line(
            key=short_key,
            depth=depth,
            text=text,
            size=size,
            is_cut=is_cut,
            pointer=address,
            is_text=isinstance(value, str),
        )
        self.lines.append(line)
        if is_nested:
            self._add_all(value if isinstance(value, Mapping) else list(value), pointer, depth + 1)


def named(pointer: str) -> str:
    """A pointer for people: the keys with dots between, cut."""
    text = ".".join(unescaped(part) for part in pointer.split("/")[1:])
    return visible(text[:KEY_CHARACTERS]) + "…" * (len(text) > KEY_CHARACTERS)


def value_at(row: Mapping[str, Any], pointer: str) -> Any:
    """The value that a pointer addresses. Raises NotThereError."""
    value: Any = row
    for part in pointer.split("/")[1:]:
        key = unescaped(part)
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list | tuple) and key.isascii() and key.isdecimal() and int(key[:9]) < len(value):
            value = value[int(key)]
        else:
            raise NotThereError(f"The row has no value at {pointer!r:.200}. Open the row, and a value of it.")
    return value


def escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
