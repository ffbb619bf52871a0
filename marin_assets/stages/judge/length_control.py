"""The win rate that a model would have if its answers were as long as the baseline's.

After Dubois et al. 2024, arXiv:2404.04475: a logistic regression of the preferences,

    log-odds = model + length * tanh(difference of lengths / its standard deviation) + difficulty * (instruction's)

of which the prediction without the length term is the length-controlled win rate. See docs/reference/judge.md for what
differs from AlpacaEval's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PRIOR_DEVIATION = 3.0
"""Standard deviation of the normal prior of each coefficient, in log-odds: it keeps them finite where a judge always
prefers one side. Of 2, 3, 5 and 10, a greater one leaves less of a raw rate of 0.69 of a judge of length alone (of 50
judgements 0.547, 0.536, 0.525, 0.516; of 800 0.518 to 0.507) and scatters more (of 50: 0.07, 0.09, 0.11, 0.14). Rates
of other judges differ by less than a tenth of their error. Means of 1,000 draws."""


def length_controlled(
    preferences: Sequence[float], length_differences: Sequence[float], difficulties: Sequence[float] | None = None
) -> tuple[float, float] | None:
    """Return the length-controlled win rate and its standard error. `preferences` are from 0 to 1, lengths in
    characters. None for fewer than two answers, and for lengths that all differ by the same: their effect is not seen.
    """
    import numpy as np
    from scipy.optimize import minimize  # 0.3 s to import

    count = len(preferences)
    wins, lengths = np.asarray(preferences, float), np.asarray(length_differences, float)
    spread = float(lengths.std(ddof=1)) if count > 1 else 0.0
    if count < 2 or (not spread and lengths.any()):
        return None
    columns = [np.ones(count), np.tanh(lengths / (spread or 1.0))]
    if difficulties is not None:
        columns.append(np.asarray(difficulties, float))
    features = np.stack(columns, axis=1)
    precision = np.eye(features.shape[1]) / PRIOR_DEVIATION**2

    def loss(weights: Any) -> tuple[float, Any]:
        logits = features @ weights
        nats = np.logaddexp(0.0, logits) - wins * logits
        gradient = features.T @ (_share(logits) - wins) + precision @ weights
        return float(nats.sum() + weights @ precision @ weights / 2), gradient

    def curvature(weights: Any) -> Any:
        shares = _share(features @ weights)
        return (features * (shares * (1 - shares))[:, None]).T @ features + precision

    start = np.zeros(features.shape[1])
    weights = minimize(loss, start, jac=True, hess=curvature, method="trust-exact").x
    without_length = features.copy()
    without_length[:, 1] = 0.0
    shares = _share(without_length @ weights)
    slope = (without_length * (shares * (1 - shares))[:, None]).mean(axis=0)
    scores = features * (wins - _share(features @ weights))[:, None]
    inverse = np.linalg.inv(curvature(weights))
    # robust, as preferences are no draws of 0 and 1, and corrected for the number of coefficients
    covariance = inverse @ (scores.T @ scores) @ inverse * (count / max(count - features.shape[1], 1))
    variance = slope @ covariance @ slope + shares.var(ddof=1) / count
    return float(shares.mean()), float(np.sqrt(variance))


def _share(logits: Any) -> Any:
    import numpy as np

    return np.exp(-np.logaddexp(0.0, -logits))
