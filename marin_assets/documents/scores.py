"""Scores as evaluations of models write them: the table `scores.csv`, the error of a mean over questions, pass@k.

pass@k is the unbiased estimator of Chen et al. 2021 (arXiv 2107.03374, section 2.1).
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

Z95 = 1.96
"""Half the width of a 95% confidence interval, in standard errors."""
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


def bounds_of(task_scores: Mapping[str, float]) -> dict[str, float]:
    """Return the bounds of the 95% confidence interval of each score that has a standard error."""
    bounds: dict[str, float] = {}
    for metric, value in task_scores.items():
        error = task_scores.get(f"{metric}_stderr")
        if error is not None:
            bounds |= {f"{metric}_lower95": value - Z95 * error, f"{metric}_upper95": value + Z95 * error}
    return bounds


def pass_at(k: int, answers: int, right: int) -> float:
    """The probability that at least one of `k` answers is right, drawn without replacement from `answers` of which
    `right` are."""
    return 1.0 - math.comb(answers - right, k) / math.comb(answers, k)
