"""Scores as evaluations of models write them: the table `scores.csv`, and the error of a mean over questions."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

COLUMNS = ("task", "metric", "value", "error", "n", "shots", "version", "higher_is_better")


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The table with a header; None is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def clustered_error(values: Sequence[float], passages: Sequence[Hashable]) -> float:
    """Return the standard error of a mean whose values are alike within a passage. At least two passages."""
    mean = math.fsum(values) / len(values)
    residuals: dict[Hashable, float] = defaultdict(float)
    for value, passage in zip(values, passages, strict=True):
        residuals[passage] += value - mean
    groups = len(residuals)
    squares = math.fsum(residual**2 for residual in residuals.values())
    return math.sqrt(squares * groups / (groups - 1)) / len(values)
