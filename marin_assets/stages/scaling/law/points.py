"""The runs as arrays, and the residuals of a law on them.

The objective of a law is the sum of Huber's losses of the log residuals: a residual counts as its square up to delta,
and as its size beyond, so that a few runs that failed do not decide. That with delta = 1e-3 is of Hoffmann et al. 2022,
section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.stages.scaling.law.law import Law

LEAST_EXPONENT, MOST_EXPONENT = 0.01, 3.0
"""Bounds of alpha and beta. A fit at one of them has no optimum within."""
AT_A_BOUND = 1.02
"""A factor: an exponent so near to a bound is at it."""


@dataclass(frozen=True, kw_only=True)
class Points:
    """Arrays of one length, with the logs around their means, where the parameters correlate least."""

    params: Any
    tokens: Any
    loss: Any
    log_params: Any
    log_tokens: Any
    log_loss: Any
    mean_log_params: float
    mean_log_tokens: float

    def __len__(self) -> int:
        return len(self.loss)

    def law(self, theta: Any) -> Law:
        """The law of (log E, log A', log B', log alpha, log beta), with A' = A / N^alpha at the mean of log N."""
        import numpy as np

        e, a, b, alpha, beta = np.moveaxis(np.exp(theta), -1, 0)
        return Law(e, a * np.exp(alpha * self.mean_log_params), b * np.exp(beta * self.mean_log_tokens), alpha, beta)


def points_of(params: Any, tokens: Any, loss: Any) -> Points:
    """Points of three sequences of positive numbers."""
    import numpy as np

    params, tokens, loss = (np.asarray(values, float) for values in (params, tokens, loss))
    log_params, log_tokens = np.log(params), np.log(tokens)
    return Points(
        params=params,
        tokens=tokens,
        loss=loss,
        log_params=log_params - log_params.mean(),
        log_tokens=log_tokens - log_tokens.mean(),
        log_loss=np.log(loss),
        mean_log_params=float(log_params.mean()),
        mean_log_tokens=float(log_tokens.mean()),
    )


def residuals_of(points: Points, law: Law) -> Any:
    """Log of the measured by the fitted loss, of each run: +0.01 is a loss 1 % above the law."""
    import numpy as np

    return points.log_loss - np.log(law.loss(points.params, points.tokens))
