"""Forecast the loss of any run, and the best run of a budget, with intervals from the resamples of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.stages.scaling.law.fit import central
from marin_assets.stages.scaling.law.law import Law


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A number, and the bounds of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class LossForecast:
    """The loss of a run by its parameters and tokens."""

    params: float
    tokens: float
    curve: Interval
    """The interval of the law."""
    run: Interval
    """The interval of a single run, which also has the spread of the runs around the law."""


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The best model of a budget. Its loss is that of the law."""

    flops: float
    params: Interval
    tokens: Interval
    tokens_per_param: Interval
    loss: Interval


@dataclass(frozen=True, kw_only=True)
class Forecaster:
    """A law with its resamples, as they are in a fit's output."""

    law: Law
    resamples: Law
    """Arrays."""
    drawn_residuals: Any
    """Array: a residual of a single run for each resample."""
    confidence: float
    flops_per_parameter_token: float

    def loss(self, params: float, tokens: float) -> LossForecast:
        """Forecast the loss of a run."""
        import numpy as np

        value, drawn = float(self.law.loss(params, tokens)), self.resamples.loss(params, tokens)
        return LossForecast(
            params=params,
            tokens=tokens,
            curve=self._interval(value, drawn),
            run=self._interval(value, drawn * np.exp(self.drawn_residuals)),
        )

    def optimum(self, flops: float) -> Optimum:
        """Forecast the best model of a budget."""
        factor = self.flops_per_parameter_token
        params, drawn_params = (law.best_params(flops, factor) for law in (self.law, self.resamples))
        tokens, drawn_tokens = (law.best_tokens(flops, factor) for law in (self.law, self.resamples))
        drawn_loss = self.resamples.loss(drawn_params, drawn_tokens)
        return Optimum(
            flops=flops,
            params=self._interval(params, drawn_params),
            tokens=self._interval(tokens, drawn_tokens),
            tokens_per_param=self._interval(tokens / params, drawn_tokens / drawn_params),
            loss=self._interval(float(self.law.loss(params, tokens)), drawn_loss),
        )

    def _interval(self, value: float, drawn: Any) -> Interval:
        low, high = central(drawn, self.confidence)
        return Interval(value=float(value), low=low, high=high)
