"""Agreement of a classifier with the labels, or the numbers, of examples that it was not trained on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

Z95 = 1.959964
"""Standard errors on either side of a 95 % confidence interval (normal distribution)."""


def scores(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Return accuracy with its bounds, majority_share, precision and recall of (true label, predicted label) pairs.

    precision_<label> and recall_<label> have 95 % bounds, as accuracy has; those of the label with the fewest true
    pairs are rare_precision and rare_recall too: always answering the majority has a high accuracy, and none of these.
    `pairs` has at least one element.
    """
    true, predicted = Counter(t for t, _ in pairs), Counter(p for _, p in pairs)
    hits = Counter(t for t, p in pairs if t == p)
    right, total = sum(hits.values()), len(pairs)
    lower, upper = wilson(right, total)
    result = {
        "accuracy": right / total,
        "accuracy_lower95": lower,
        "accuracy_upper95": upper,
        "majority_share": max(true.values()) / total,
    }
    rarest = min(sorted(true), key=lambda label: true[label])
    for label in sorted(true):
        for name, among in (("precision", predicted[label]), ("recall", true[label])):
            lower, upper = wilson(hits[label], among) if among else (0.0, 1.0)
            values = {"": hits[label] / among if among else 0.0, "_lower95": lower, "_upper95": upper}
            result |= {f"{name}_{label}{end}": value for end, value in values.items()}
            if label == rarest:
                result |= {f"rare_{name}{end}": value for end, value in values.items()}
    return result


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share (Wilson 1927), which is valid near 0 and 1 too."""
    share, z2 = successes / trials, Z95**2
    middle = share + z2 / (2 * trials)
    width = Z95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return max((middle - width) / (1 + z2 / trials), 0.0), min((middle + width) / (1 + z2 / trials), 1.0)


def agreement(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return mean_error, mean_squared_error, deviation and correlation of (true number, predicted number) pairs, with
    the 95 % interval of the correlation (Fisher 1915): correlation_lower95, correlation_upper95.

    mean_error is the mean of the absolute differences; deviation the standard deviation of the true numbers, which is
    the root of the squared error of their mean; correlation is Pearson's, 0 if either side is constant. `pairs` has at
    least one element; of fewer than four the interval is from -1 to 1.
    """
    true, predicted = (list(side) for side in zip(*pairs, strict=True))
    count = len(pairs)
    middle, guessed = math.fsum(true) / count, math.fsum(predicted) / count
    spread = math.sqrt(math.fsum((t - middle) ** 2 for t in true) / count)
    guessed_spread = math.sqrt(math.fsum((p - guessed) ** 2 for p in predicted) / count)
    shared = math.fsum((t - middle) * (p - guessed) for t, p in pairs) / count
    correlation = shared / (spread * guessed_spread) if spread and guessed_spread else 0.0
    lower, upper = _correlation_bounds(correlation, count)
    return {
        "mean_error": math.fsum(abs(t - p) for t, p in pairs) / count,
        "mean_squared_error": math.fsum((t - p) ** 2 for t, p in pairs) / count,
        "deviation": spread,
        "correlation": correlation,
        "correlation_lower95": lower,
        "correlation_upper95": upper,
    }


def _correlation_bounds(correlation: float, count: int) -> tuple[float, float]:
    if count < 4:
        return -1.0, 1.0
    middle = math.atanh(max(min(correlation, 1 - 1e-12), -1 + 1e-12))
    width = Z95 / math.sqrt(count - 3)
    return math.tanh(middle - width), math.tanh(middle + width)
