"""The config of a fit of a scaling law, and what is wrong with one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.runs import COLUMNS, FLOPS_PER_PARAMETER_TOKEN, LEAST_NUMBER, MOST_NUMBER
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.types.near_names import expected_one_of

LEAST_RESAMPLES, MOST_RESAMPLES = 20, 100_000


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """A run to forecast: a model of these parameters on these tokens, or the best model of a budget."""

    label: str = ""
    params: float | None = None
    tokens: float | None = None
    flops: float | None = None


@dataclass(frozen=True, kw_only=True)
class FitScalingLawConfig:
    runs_path: str
    """A table of runs: a file, or a folder with files of rows."""
    output_path: str = THIS_OUTPUT_PATH
    runs_digest: str | None = versioned(None)
    """Digest of a table on this machine that no step makes."""
    columns: dict[str, str] = field(default_factory=lambda: versioned({}))
    """Column of the contract -> its name in the table: {"loss": "c4"}. Others have their own names."""
    where: dict[str, Any] = field(default_factory=lambda: versioned({}))
    """Column -> value of the rows to take: {"final": 1}. All rows if empty."""
    held_out: tuple[str, ...] = versioned(())
    """Labels of runs that the fit does not read, and whose loss it forecasts."""
    budgets: tuple[float, ...] = versioned(())
    """FLOPs to state the best model of; 1, 10 and 100 times those of the largest run if empty."""
    forecasts: tuple[Forecast, ...] = versioned(())
    """Runs that do not exist yet."""
    delta: float = versioned(1e-3)
    """Log residual up to which the objective is quadratic (Huber), as Hoffmann et al. have it."""
    resamples: int = versioned(1000)
    """Refits to resampled runs, for the intervals."""
    seed: int = versioned(0)
    confidence: float = versioned(0.8)
    """Share of the resamples that an interval holds."""
    flops_per_parameter_token: float = versioned(FLOPS_PER_PARAMETER_TOKEN)
    """k of C = k N D, for budgets, and for runs of a table without FLOPs."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, check_fit_config, name)


def check_fit_config(config: FitScalingLawConfig) -> None:
    """Raise ScalingError for a value that no fit can have."""
    check_columns(config.columns, COLUMNS)
    check_numbers(config)
    require_positive(config.flops_per_parameter_token, "flops_per_parameter_token")
    for budget in config.budgets:
        require_positive(budget, "A budget")
    for forecast in config.forecasts:
        given = {name for name in ("params", "tokens", "flops") if getattr(forecast, name) is not None}
        if given not in ({"params", "tokens"}, {"flops"}):
            raise ScalingError(
                f"A forecast has {', '.join(sorted(given)) or 'no number'}, expected params and tokens, or flops "
                "alone: Forecast(params=7e9, tokens=4e12)."
            )
        for name in given:
            require_positive(getattr(forecast, name), f"{name} of a forecast")


def check_columns(columns: Mapping[str, str], names: Sequence[str]) -> None:
    """Raise ScalingError for a column that the contract does not have."""
    if unknown := next((name for name in columns if name not in names), None):
        raise ScalingError(f"columns names {unknown!r}, {expected_one_of(unknown, names)}")


def check_numbers(config: Any) -> None:
    """Raise ScalingError for a wrong delta, confidence, resamples or seed."""
    require_positive(config.delta, "delta")
    if not 0 < config.confidence < 1:
        raise ScalingError(f"confidence is {config.confidence!r}, expected a share between 0 and 1, such as 0.8.")
    if not LEAST_RESAMPLES <= config.resamples <= MOST_RESAMPLES:
        raise ScalingError(
            f"resamples is {config.resamples!r}, expected {LEAST_RESAMPLES} to {MOST_RESAMPLES:,}, such as 1000."
        )
    if config.seed < 0:
        raise ScalingError(f"seed is {config.seed!r}, expected a whole number from 0.")


def require_positive(value: float, name: str) -> None:
    """Raise ScalingError for a number that no run has: not finite, not positive, or beyond the powers of floats."""
    if not LEAST_NUMBER <= value <= MOST_NUMBER:
        bounds = f" of {LEAST_NUMBER:g} to {MOST_NUMBER:g}" if 0 < value < math.inf else ""
        raise ScalingError(f"{name} is {value!r}, expected a positive number{bounds}.")
