"""The law L(N, D) = E + A / N^alpha + B / D^beta, and what follows from it: the best N and D for a budget.

With C = k N D the loss is least at N* = G (C/k)^a and D* = (C/k)^b / G, where a = beta / (alpha + beta),
b = alpha / (alpha + beta) and G = (alpha A / (beta B))^(1 / (alpha + beta)): Hoffmann et al. 2022, section 3.3.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

PARAMETERS = ("E", "A", "B", "alpha", "beta")
LARGEST_LOG = 150.0
"""Bound of log N* and log D*, 1e65: resamples that determine no optimum have such ones."""


@dataclass(frozen=True)
class Law:
    """A fitted law. Each field is a number, or an array with one for each resample."""

    E: Any
    A: Any
    B: Any
    alpha: Any
    beta: Any

    def loss(self, params: Any, tokens: Any) -> Any:
        return self.E + self.A / params**self.alpha + self.B / tokens**self.beta

    @property
    def a(self) -> Any:
        """The exponent of the best number of parameters over compute."""
        return self.beta / (self.alpha + self.beta)

    @property
    def b(self) -> Any:
        """The exponent of the best number of tokens over compute."""
        return self.alpha / (self.alpha + self.beta)

    def best_params(self, flops: float, flops_per_parameter_token: float) -> Any:
        """N* of a budget."""
        return self._best(flops / flops_per_parameter_token)[0]

    def best_tokens(self, flops: float, flops_per_parameter_token: float) -> Any:
        """D* of a budget: all of it, at N*."""
        return self._best(flops / flops_per_parameter_token)[1]

    def values(self) -> dict[str, Any]:
        return dict(zip(PARAMETERS, astuple(self), strict=True))

    def _best(self, product: float) -> tuple[Any, Any]:
        """N* and D* of N D, by logs: exponents near 0 make numbers that no float has."""
        import numpy as np

        scale = (np.log(self.alpha * self.A) - np.log(self.beta * self.B)) / (self.alpha + self.beta)
        log_params = np.clip(scale + self.a * np.log(product), -LARGEST_LOG, LARGEST_LOG)
        log_tokens = np.clip(np.log(product) - log_params, -LARGEST_LOG, LARGEST_LOG)
        return np.exp(log_params), np.exp(log_tokens)
