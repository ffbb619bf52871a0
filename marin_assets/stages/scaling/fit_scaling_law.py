"""Fit the law of a loss by parameters and tokens to finished runs, with intervals, doubts and forecasts.

In:  a table of runs (`runs.py`): label, params, tokens, flops, loss.
Out: `runs.csv`, the runs as they were read, with fitted loss, residual and influence;
     `fit.json`, the law (below);
     `resamples.csv`, the law of each resample, from which any interval follows;
     `forecasts.csv`, losses of runs that the fit has not read, with what came true where the table has it;
     `plots/`, and `fit.html`, a page with all of it.

fit.json has nothing of runs that are held out, not even that they exist:

    {"format_version": 1, "formula": "loss = E + A / params^alpha + B / tokens^beta",
     "method": {"name": "robust variable projection", "delta", "resamples", "seed", "confidence",
                "flops_per_parameter_token"},
     "runs": {"count", "params": [least, most], "tokens": […], "flops": […], "loss": […]},
     "parameters": {"E", "A", "B", "alpha", "beta": {"value", "error", "low", "high"}},
     "exponents": {"a" (params), "b" (tokens): {"value", "error", "low", "high"}},
     "covariance": {"names": ["E", "A", "B", "alpha", "beta"], "matrix": [[…], …]},
     "objective": …, "residual": {"rms", "largest", "largest_run"},
     "second_opinion": {"name": "L-BFGS", "parameters": {…}, "exponents": {…}, "objective"},
     "parabolas": {"budgets": [{"flops", "runs", "curvature", "tokens", "params", "loss", "inside"}], "a", "b"},
     "optima": [{"flops", "params": {"value", "low", "high"}, "tokens": {…}, "tokens_per_param": {…}, "loss": {…}}],
     "warnings": ["a sentence", …]}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.runs import COLUMNS, FLOPS_PER_PARAMETER_TOKEN
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources

KINDS = ("json", "html")

FORMAT_VERSION = 1
RUNS, FIT, RESAMPLES, FORECASTS, PAGE = "runs.csv", "fit.json", "resamples.csv", "forecasts.csv", "fit.html"


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """A run to forecast: a model of so many parameters on so many tokens, or the best model of a budget."""

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
        check_config(self, _check, name)


def fit_scaling_law(config: FitScalingLawConfig) -> dict[str, Any]:
    """Fit the law."""
    _check(config)
    raise NotImplementedError


def _check(config: FitScalingLawConfig) -> None:
    if unknown := next((name for name in config.columns if name not in COLUMNS), None):
        raise ScalingError(f"columns names {unknown!r}, expected one of {', '.join(map(repr, COLUMNS))}.")
