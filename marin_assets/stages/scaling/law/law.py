"""The law L(N, D) = E + A / N^alpha + B / D^beta, and what follows from it: the best N and D for a budget.

With C = k N D the loss is least at N* = G (C/k)^a and D* = (C/k)^b / G, where a = beta / (alpha + beta),
b = alpha / (alpha + beta) and G = (alpha A / (beta B))^(1 / (alpha + beta)): Hoffmann et al. 2022, section 3.3.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

PARAMETERS = ("E", "A", "B", "alpha", "beta")


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
        scale = (self.alpha * self.A / (self.beta * self.B)) ** (1 / (self.alpha + self.beta))
        return scale * (flops / flops_per_parameter_token) ** self.a

    def best_tokens(self, flops: float, flops_per_parameter_token: float) -> Any:
        """D* of a budget: all of it, at N*."""
        return flops / flops_per_parameter_token / self.best_params(flops, flops_per_parameter_token)

    def values(self) -> dict[str, Any]:
        return dict(zip(PARAMETERS, astuple(self), strict=True))
