"""The tables of a fit: its runs, its forecasts and the best model of each budget, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from marin_assets.stages.scaling.fit_config import Forecast
from marin_assets.stages.scaling.law.fit import Fit
from marin_assets.stages.scaling.law.forecast import Forecaster, LossForecast, Optimum
from marin_assets.stages.scaling.runs import COLUMNS, Run
from marin_assets.stages.scaling.tables import plain

FORECAST_COLUMNS = (
    *("label", "params", "tokens", "flops", "loss", "low", "high", "run_low", "run_high"),
    *("measured", "error"),
)
"""Columns of forecasts.csv: the law's loss and its interval, that of a single run, and what came true."""


def forecast_row(forecaster: Forecaster, forecast: Forecast, measured: float | None) -> dict[str, Any]:
    """The row of a forecast, with the loss that was measured if one was."""
    if forecast.params is None or forecast.tokens is None:
        assert forecast.flops is not None
        optimum = forecaster.optimum(forecast.flops)
        loss, flops = forecaster.loss(optimum.params.value, optimum.tokens.value), forecast.flops
    else:
        loss = forecaster.loss(forecast.params, forecast.tokens)
        flops = forecast.flops or forecaster.flops_per_parameter_token * forecast.params * forecast.tokens
    return {
        "label": forecast.label or f"{loss.params:.3g} on {loss.tokens:.3g}",
        "flops": plain(flops),
        **_loss_cells(loss),
        "measured": measured,
        "error": plain(loss.curve.value / measured - 1) if measured else None,
    }


def _loss_cells(loss: LossForecast) -> dict[str, float]:
    return {
        "params": plain(loss.params),
        "tokens": plain(loss.tokens),
        "loss": plain(loss.curve.value),
        "low": plain(loss.curve.low),
        "high": plain(loss.curve.high),
        "run_low": plain(loss.run.low),
        "run_high": plain(loss.run.high),
    }


def optimum_row(optimum: Optimum) -> dict[str, float]:
    """A flat row, for tables."""
    row = {"flops": optimum.flops}
    for name in ("params", "tokens", "tokens_per_param", "loss"):
        interval = asdict(getattr(optimum, name))
        row |= {name: plain(interval["value"])}
        row |= {f"{name}_{bound}": plain(interval[bound]) for bound in ("low", "high")}
    return row


def run_rows(fit: Fit, runs: Sequence[Run], columns: Mapping[str, str]) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows of runs.csv.

    They are those of the contract; `fitted`, the law's loss; `residual`, log(loss / fitted); the exponents of the law
    of all other runs; `influence`, the largest of their changes in standard errors; then the table's further columns.
    """
    influence = fit.influence()
    fitted = fit.law.loss(fit.points.params, fit.points.tokens)
    mapped = {columns.get(name, name) for name in COLUMNS}
    rows = []
    for number, run in enumerate(runs):
        strongest = max((influence[name][number] for name in influence), key=abs)
        row: dict[str, Any] = {
            "label": run.label,
            "params": run.params,
            "tokens": run.tokens,
            "flops": run.flops,
            "loss": run.values["loss"],
            "fitted": float(fitted[number]),
            "residual": float(fit.residuals[number]),
            **{f"{name}_without": float(getattr(fit.without, name)[number]) for name in influence},
            "influence": float(strongest),
        }
        rows.append({**row, **_further(run.row.values, row, mapped)})
    return list(dict.fromkeys(name for row in rows for name in row)), rows


def _further(values: Mapping[str, Any], row: Mapping[str, Any], mapped: set[str]) -> dict[str, Any]:
    """Columns of the table that are kept; one whose name is taken is called "given_<name>"."""
    return {f"given_{name}" if name in row else name: value for name, value in values.items() if name not in mapped}
