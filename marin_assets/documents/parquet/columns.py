"""The words for a column that a file or a row does not have: the columns that it has, and the nearest of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

NAMED = 20
"""Columns in a sentence."""


def missing_column(column: str, existing: Iterable[str]) -> str:
    """Return for example "no column 'bdoy', only 'title', 'body', of which 'body' is the nearest"."""
    names = list(existing)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    only = ", ".join(f"{name!r:.80}" for name in names[:NAMED]) or "none"
    by_lower_case = {name.lower(): name for name in names}
    near = difflib.get_close_matches(column.lower(), by_lower_case, n=1)
    nearest = f", of which {by_lower_case[near[0]]!r} is the nearest" if near else ""
    return f"no column {column!r}, only {only}{more}{nearest}"
