"""Write a table as CSV. Equal rows are equal bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

DIGITS = 9
"""Significant digits of a stored number."""


def as_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The table with a header; None is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def plain(value: Any) -> float:
    """A number with the digits that are stored."""
    return float(f"{float(value):.{DIGITS}g}")


def _cell(value: Any) -> Any:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else value
