"""Rows as CSV with a header. Numbers have all their digits, so that a reader has the same ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any


def rows_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The table; its columns are those of the first row, and None is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
