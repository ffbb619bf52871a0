"""How often a classifier is right, by label, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

Z95 = 1.959964
"""Quantile of the normal distribution for 95 % between both bounds."""


def scores(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Scores of (true label, said label), at least one: accuracy with bounds, majority_share, precision and recall."""
    true, said = Counter(t for t, _ in pairs), Counter(s for _, s in pairs)
    hits = Counter(t for t, s in pairs if t == s)
    right, total = sum(hits.values()), len(pairs)
    lower, upper = wilson(right, total)
    result = {
        "accuracy": right / total,
        "accuracy_lower95": lower,
        "accuracy_upper95": upper,
        "majority_share": max(true.values()) / total,
    }
    for label in sorted(true):
        result[f"precision_{label}"] = hits[label] / said[label] if said[label] else 0.0
        result[f"recall_{label}"] = hits[label] / true[label]
    return result


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927), which holds for shares near 1 too."""
    share, z2 = successes / trials, Z95**2
    middle = share + z2 / (2 * trials)
    width = Z95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return max((middle - width) / (1 + z2 / trials), 0.0), min((middle + width) / (1 + z2 / trials), 1.0)
