"""Fit a ladder: the score of a large model at a task from small ones, by the loss of the task.

Bhagia et al. 2024. Step 1: the loss of the finished runs by parameters and tokens (`law/`). Step 2: the score by the
loss, of all checkpoints after the first tenth of a run (`ladder/curve.py`). Chained, they forecast the score of a run.

In:  a table of checkpoints (`runs.py`): label, params, tokens, flops, loss, score. The loss is that of the task: bits
     per byte of the right answer; the score is from 0 to 1.
Out: `ladder.json`, both fits (below), which have nothing of the targets;
     `checkpoints.csv`, what was fitted, with fitted loss (of finished runs), fitted score and residual;
     `forecasts.csv`, scores of runs that the fit has not read, with what came true where the table has it;
     `plots/ladder.png`, and `ladder.html`, a page with all of it.

    {"format_version": 1, "formula": …, "method": {…}, "runs": {"count", "checkpoints"},
     "loss": {"parameters": …, "exponents": …, "residual": …, as in fit.json},
     "curve": {"floor", "ceiling", "steepness", "middle": {"value", "error", "low", "high"}}, "score_residual": …,
     "warnings": […]}
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.scaling.digest import require_digest
from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.fit_config import Forecast
from marin_assets.stages.scaling.fit_file import estimate, fit_content, interval_content
from marin_assets.stages.scaling.fittable import measured, require_fittable
from marin_assets.stages.scaling.ladder.chain import Chain, chain
from marin_assets.stages.scaling.ladder.curve import CURVE_PARAMETERS
from marin_assets.stages.scaling.ladder.doubts import doubts_of_ladder
from marin_assets.stages.scaling.ladder.ladder_config import FitLadderConfig, check_ladder_config
from marin_assets.stages.scaling.law.fit import fit_law
from marin_assets.stages.scaling.pages.ladder_page import draw_ladder, ladder_page
from marin_assets.stages.scaling.runs import SCORE, Row, Run, label_of, read_table, rows_where, runs_of
from marin_assets.stages.scaling.tables import as_csv, plain
from marin_resources.storage.files import write_bytes, write_json
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("json", "html")

FORMAT_VERSION = 1
LADDER, CHECKPOINTS, FORECASTS, PAGE, PLOT = (
    "ladder.json", "checkpoints.csv", "forecasts.csv", "ladder.html", "plots/ladder.png",
)  # fmt: skip
FORMULA = (
    "score = floor + (ceiling - floor) / (1 + exp(steepness (loss - middle))), "
    "loss = E + A / params^alpha + B / tokens^beta"
)
LEAST_CHECKPOINTS = len(CURVE_PARAMETERS) + 2
CHECKPOINT_COLUMNS = ("label", "params", "tokens", "loss", "score", "final", "fitted_loss", "fitted_score", "residual")
FORECAST_COLUMNS = (
    *("label", "params", "tokens", "loss", "score", "low", "high", "run_low", "run_high"),
    *("measured_loss", "measured", "error"),
)

log = logging.getLogger(__name__)


def fit_ladder(config: FitLadderConfig) -> dict[str, Any]:
    """Fit the ladder, and write it with its doubts and forecasts.

    Returns runs, checkpoints, score_residual_rms, warnings (how many), the parameters of both fits (each with error,
    low, high), forecasts (rows), doubts (sentences), plots and report. Raises ScalingError for a table that cannot be
    read, and for runs that no ladder can be fitted to.
    """
    check_ladder_config(config)
    require_digest(config.runs_path, config.runs_digest)
    checkpoints, targets = _split(rows_where(read_table(config.runs_path), config.where), config)
    finished = _finished(checkpoints)
    require_fittable(list(finished.values()))
    used = [run for run in checkpoints if run.tokens > config.burn_in * finished[run.label].tokens]
    _require_scores(used)
    fitted = _fit(used, finished, config)
    warnings = doubts_of_ladder(fitted, list(finished))
    for warning in warnings:
        log.warning("%s", warning)
    content = _content(fitted, list(finished.values()), used, config, warnings)
    forecasts = [_forecast(fitted, target, *results) for target, *results in _forecasts(targets, config)]
    rows = _rows(fitted, used, finished)
    picture = draw_ladder(fitted, rows, forecasts)
    write_json(join(config.output_path, LADDER), content)
    write_bytes(join(config.output_path, CHECKPOINTS), as_csv(CHECKPOINT_COLUMNS, rows))
    write_bytes(join(config.output_path, FORECASTS), as_csv(FORECAST_COLUMNS, forecasts))
    write_bytes(join(config.output_path, PLOT), picture)
    write_bytes(join(config.output_path, PAGE), ladder_page(content, forecasts, picture))
    return {
        "runs": len(finished),
        "checkpoints": len(used),
        "score_residual_rms": content["score_residual"],
        "warnings": len(warnings),
        "forecasts": forecasts,
        "doubts": [{"warning": warning} for warning in warnings],
        "parameters": {**content["loss"]["parameters"], **content["curve"]},
        "plots": [PLOT],
        "report": PAGE,
    }


def _split(rows: Sequence[Row], config: FitLadderConfig) -> tuple[list[Run], list[Run]]:
    """The checkpoints to fit, and the last row of each target, of which loss and score are not read."""
    labels = [label_of(row, config.columns) for row in rows]
    for label in config.targets:
        if label not in labels:
            raise ScalingError(f"targets names {label!r}, {expected_one_of(label, labels, 'runs')}")
    taken = [row for row, label in zip(rows, labels, strict=True) if label not in config.targets]
    others = [row for row, label in zip(rows, labels, strict=True) if label in config.targets]
    if not taken:
        raise ScalingError("targets names all runs of the table, expected some to fit the ladder to.")
    checkpoints = runs_of(taken, config.columns, ("loss", SCORE), may_be_zero=(SCORE,))
    return checkpoints, list(_finished(runs_of(others, config.columns, ())).values())


def _finished(checkpoints: Sequence[Run]) -> dict[str, Run]:
    """By label, the checkpoint of the most tokens. Raises ScalingError for two of them, or for a run of two sizes."""
    finished: dict[str, Run] = {}
    for run in checkpoints:
        last = finished.setdefault(run.label, run)
        if run is not last and run.params != last.params:
            raise ScalingError(
                f"The run {run.label!r} has checkpoints of {last.params:,.0f} and of {run.params:,.0f} parameters, "
                "expected one number. Give each run a label of its own."
            )
        if run is not last and run.tokens == last.tokens:
            raise ScalingError(
                f"The run {run.label!r} has two rows at {run.tokens:,.0f} tokens, expected one. Remove one, or give "
                "each run a label of its own."
            )
        if run.tokens > last.tokens:
            finished[run.label] = run
    return finished


def _require_scores(checkpoints: Sequence[Run]) -> None:
    for run in checkpoints:
        if run.values[SCORE] > 1:
            raise ScalingError(
                f"{run.row.place}, the run {run.label!r}, has the score {run.values[SCORE]:g}, expected one from 0 to "
                "1. Divide percents by 100."
            )
    number = len({run.values["loss"] for run in checkpoints})
    if number < LEAST_CHECKPOINTS:
        raise ScalingError(
            f"The table has {number} checkpoints of different losses, expected at least {LEAST_CHECKPOINTS}: two more "
            "than the curve has parameters. Add checkpoints."
        )


def _fit(used: Sequence[Run], finished: Mapping[str, Run], config: FitLadderConfig) -> Chain:
    runs = list(finished.values())
    law = fit_law(
        [run.params for run in runs],
        [run.tokens for run in runs],
        [run.flops for run in runs],
        [run.values["loss"] for run in runs],
        delta=config.delta,
        resamples=config.resamples,
        seed=config.seed,
        confidence=config.confidence,
    )
    numbers = {label: number for number, label in enumerate(finished)}
    return chain(
        law,
        [run.values["loss"] for run in used],
        [run.values[SCORE] for run in used],
        [numbers[run.label] for run in used],
        [run is finished[run.label] for run in used],
        delta=config.score_delta,
        seed=config.seed,
    )


def _content(
    fitted: Chain, runs: Sequence[Run], used: Sequence[Run], config: FitLadderConfig, warnings: Sequence[str]
) -> dict[str, Any]:
    names = ("delta", "score_delta", "burn_in", "resamples", "seed", "confidence")
    law = fit_content(fitted.law, runs, {}, (), ())
    curves = zip(fitted.curve.values().items(), fitted.curves.values().values(), strict=True)
    return {
        "format_version": FORMAT_VERSION,
        "formula": FORMULA,
        "method": {name: getattr(config, name) for name in names},
        "runs": {"count": len(runs), "checkpoints": len(used)},
        "loss": {name: law[name] for name in ("runs", "parameters", "exponents", "residual", "second_opinion")},
        "curve": {name: estimate(fitted.law, value, drawn) for (name, value), drawn in curves},
        "score_residual": plain((fitted.residuals**2).mean() ** 0.5),
        "warnings": list(warnings),
    }


def _forecasts(targets: Sequence[Run], config: FitLadderConfig) -> list[tuple[Forecast, float | None, float | None]]:
    """The runs to forecast, each with its measured loss and score if the table has them."""
    loss, score = (config.columns.get(name, name) for name in ("loss", SCORE))
    of_targets = [
        (
            Forecast(label=run.label, params=run.params, tokens=run.tokens),
            measured(run.row.values.get(loss)),
            measured(run.row.values.get(score)),
        )
        for run in targets
    ]
    return [*of_targets, *((forecast, None, None) for forecast in config.forecasts)]


def _forecast(fitted: Chain, run: Forecast, loss: float | None, score: float | None) -> dict[str, Any]:
    assert run.params is not None
    assert run.tokens is not None
    of_curve, single = (interval_content(of) for of in fitted.score(run.params, run.tokens))
    return {
        "label": run.label or f"{run.params:.3g} on {run.tokens:.3g}",
        "params": run.params,
        "tokens": run.tokens,
        "loss": plain(fitted.law.law.loss(run.params, run.tokens)),
        "score": of_curve["value"],
        "low": of_curve["low"],
        "high": of_curve["high"],
        "run_low": single["low"],
        "run_high": single["high"],
        "measured_loss": loss,
        "measured": score,
        "error": None if score is None else plain(of_curve["value"] - score),
    }


def _rows(fitted: Chain, used: Sequence[Run], finished: Mapping[str, Run]) -> list[dict[str, Any]]:
    """The rows of checkpoints.csv."""
    scores = fitted.curve.score(fitted.losses)
    rows = []
    for number, run in enumerate(used):
        is_final = run is finished[run.label]
        rows.append(
            {
                "label": run.label,
                "params": run.params,
                "tokens": run.tokens,
                "loss": run.values["loss"],
                "score": run.values[SCORE],
                "final": int(is_final),
                "fitted_loss": float(fitted.law.law.loss(run.params, run.tokens)) if is_final else None,
                "fitted_score": float(scores[number]),
                "residual": float(fitted.residuals[number]),
            }
        )
    return rows
