"""Fit the law of a loss by parameters and tokens to finished runs, with intervals, doubts and forecasts.

In:  a table of runs (`runs.py`): label, params, tokens, flops, loss.
Out: `runs.csv`, the runs as they were read, with fitted loss, residual and influence;
     `fit.json`, the law (below);
     `resamples.csv`, the law of each resample, from which any interval follows (`fit_file.read_fit`);
     `forecasts.csv`, losses of runs that the fit has not read, with what came true where the table has it;
     `plots/`, and `fit.html`, a page with all of it.

fit.json has nothing of runs that are held out, not even that they exist:

    {"format_version": 1, "formula": "loss = E + A / params^alpha + B / tokens^beta",
     "method": {"name": "robust variable projection", "delta", "resamples", "seed", "confidence",
                "flops_per_parameter_token"},
     "runs": {"count", "params": [least, most], "tokens": […], "flops": […], "loss": […]},
     "parameters": {"E", "A", "B", "alpha", "beta": {"value", "error", "low", "high"}},
     "exponents": {"a" (params), "b" (tokens): {"value", "error", "low", "high"}},
     "covariance": {"names": ["E", "log A", "log B", "alpha", "beta"], "matrix": [[…], …]},
     "objective": …, "residual": {"rms", "largest", "largest_run"},
     "second_opinion": {"name": "L-BFGS", "parameters": {…}, "exponents": {…}, "objective"},
     "parabolas": {"budgets": [{"flops", "runs", "curvature", "tokens", "loss", "inside"}],
                   "a", "b": {"value", "low", "high"} or null},
     "optima": [{"flops", "params": {"value", "low", "high"}, "tokens": {…}, "tokens_per_param": {…}, "loss": {…}}],
     "warnings": ["a sentence", …]}

The fit is that of `law/`: robust variable projection, 1,000 resamples of runs, L-BFGS and parabolas beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.scaling.digest import require_digest
from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.fit_config import FitScalingLawConfig, Forecast, check_fit_config
from marin_assets.stages.scaling.fit_file import (
    FIT,
    RESAMPLE_COLUMNS,
    RESAMPLES,
    fit_content,
    forecaster_of,
    resample_rows,
)
from marin_assets.stages.scaling.fit_tables import FORECAST_COLUMNS, forecast_row, optimum_row, run_rows
from marin_assets.stages.scaling.fittable import measured, require_fittable
from marin_assets.stages.scaling.law.doubts import doubts_of
from marin_assets.stages.scaling.law.fit import Fit, fit_law
from marin_assets.stages.scaling.pages.page import fit_page
from marin_assets.stages.scaling.pages.plots import draw_fit
from marin_assets.stages.scaling.runs import Row, Run, label_of, read_table, rows_where, runs_of
from marin_assets.stages.scaling.tables import as_csv, plain
from marin_resources.storage.files import write_bytes, write_json
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("json", "html")

RUNS, FORECASTS, PAGE, PLOTS = "runs.csv", "forecasts.csv", "fit.html", "plots"
BEYOND = (1.0, 10.0, 100.0)
"""Budgets without `budgets`, in FLOPs of the largest run."""

log = logging.getLogger(__name__)


def fit_scaling_law(config: FitScalingLawConfig) -> dict[str, Any]:
    """Fit the law, and write it with its doubts.

    Returns runs, the parameters E, A, B, alpha, beta and exponents a, b as numbers, residual_rms (of the logs),
    warnings (how many), parameters (each with error, low, high), optima and forecasts (rows), doubts (sentences), plots
    and report. Raises ScalingError for a table that cannot be read, and for runs that no law can be fitted to.
    """
    check_fit_config(config)
    require_digest(config.runs_path, config.runs_digest)
    runs, held_out = _split(rows_where(read_table(config.runs_path), config.where), config)
    require_fittable(runs)
    fit = _fit(runs, config)
    flops = [run.flops for run in runs]
    warnings = doubts_of(fit, [run.label for run in runs], flops, config.flops_per_parameter_token)
    for warning in warnings:
        log.warning("%s", warning)
    forecaster = forecaster_of(fit, config.flops_per_parameter_token)
    budgets = config.budgets or tuple(plain(factor * max(flops)) for factor in BEYOND)
    optima = [forecaster.optimum(budget) for budget in budgets]
    forecasts = [forecast_row(forecaster, *forecast) for forecast in _forecasts(held_out, config)]
    content = fit_content(fit, runs, _method(config), optima, warnings)
    columns, rows = run_rows(fit, runs, config.columns)
    pictures = draw_fit(fit, rows, forecaster, optima, forecasts)
    write_json(join(config.output_path, FIT), content)
    write_bytes(join(config.output_path, RUNS), as_csv(columns, rows))
    write_bytes(join(config.output_path, RESAMPLES), as_csv(RESAMPLE_COLUMNS, resample_rows(fit)))
    write_bytes(join(config.output_path, FORECASTS), as_csv(FORECAST_COLUMNS, forecasts))
    for name, picture in pictures.items():
        write_bytes(join(config.output_path, f"{PLOTS}/{name}.png"), picture)
    write_bytes(join(config.output_path, PAGE), fit_page(content, rows, forecasts, pictures))
    numbers = {**content["parameters"], **content["exponents"]}
    return {
        "runs": len(runs),
        **{name: of["value"] for name, of in numbers.items()},
        "residual_rms": content["residual"]["rms"],
        "warnings": len(warnings),
        "doubts": [{"warning": warning} for warning in warnings],
        "parameters": numbers,
        "optima": [optimum_row(optimum) for optimum in optima],
        "forecasts": forecasts,
        "plots": [f"{PLOTS}/{name}.png" for name in pictures],
        "report": PAGE,
    }


def _fit(runs: Sequence[Run], config: FitScalingLawConfig) -> Fit:
    return fit_law(
        [run.params for run in runs],
        [run.tokens for run in runs],
        [run.flops for run in runs],
        [run.values["loss"] for run in runs],
        delta=config.delta,
        resamples=config.resamples,
        seed=config.seed,
        confidence=config.confidence,
    )


def _method(config: FitScalingLawConfig) -> Mapping[str, Any]:
    names = ("delta", "resamples", "seed", "confidence", "flops_per_parameter_token")
    return {name: getattr(config, name) for name in names}


def _split(rows: Sequence[Row], config: FitScalingLawConfig) -> tuple[list[Run], list[Run]]:
    """The runs to fit, and those that are held out, of which the loss is not read."""
    labels = [label_of(row, config.columns) for row in rows]
    for label in config.held_out:
        if label not in labels:
            raise ScalingError(f"held_out names {label!r}, {expected_one_of(label, labels, 'runs')}")
    taken = [row for row, label in zip(rows, labels, strict=True) if label not in config.held_out]
    others = [row for row, label in zip(rows, labels, strict=True) if label in config.held_out]
    if not taken:
        raise ScalingError("held_out names all runs of the table, expected some to fit the law to.")
    factor = config.flops_per_parameter_token
    return runs_of(taken, config.columns, ("loss",), factor), runs_of(others, config.columns, (), factor)


def _forecasts(held_out: Sequence[Run], config: FitScalingLawConfig) -> list[tuple[Forecast, float | None]]:
    """The forecasts to make, each with the measured loss if the table has one."""
    column = config.columns.get("loss", "loss")
    of_runs = [
        (
            Forecast(label=run.label, params=run.params, tokens=run.tokens, flops=run.flops),
            measured(run.row.values.get(column)),
        )
        for run in held_out
    ]
    return [*of_runs, *((forecast, None) for forecast in config.forecasts)]
