"""Measures of a row: the number that a value is, the length that it has, or the text that it is counted by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from marin_assets.browse.cells.tree import unescaped
from marin_assets.documents.formats import format_of

PARQUET = ".parquet"
VALUE = "/value"
LENGTH = "length"
EXACT = 2**53
"""Whole numbers beyond it are not exact as floats."""


class Missing:
    """Takes the place of a value that a row does not have."""


MISSING = Missing()


@lru_cache(64)
def keys_of(pointer: str) -> tuple[str, ...]:
    """The keys of a JSON pointer (RFC 6901), such as "/metadata/language"."""
    return tuple(unescaped(part) for part in pointer.split("/")[1:])


def value_of(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The value below these keys; MISSING without one."""
    value: Any = row
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return MISSING
        value = value[key]
    return value


def unpacked(path: str, row: Any) -> Any:
    """A row of a file with its metadata as an object: parquet holds that of documents as the text of one."""
    if format_of(path) != PARQUET or not isinstance(row, dict) or not isinstance(row.get("metadata"), str):
        return row
    try:
        metadata = json.loads(row["metadata"])
    except (ValueError, RecursionError):
        return row  # a text, as those of other software may be
    return {**row, "metadata": metadata} if isinstance(metadata, dict) else row


def number_of(value: Any) -> int | float | None:
    """The number that a value is; None for any other, a truth too."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def length_of(value: Any) -> int | None:
    """Characters of a text, bytes of bytes, entries of a list, keys of an object; None for any other."""
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else None


def category_of(value: Any) -> str | None:
    """The text by which a text or a truth is counted; None for any other."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None
