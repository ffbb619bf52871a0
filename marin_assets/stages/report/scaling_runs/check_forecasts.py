"""Compare the forecasts of a fit with the trainings that came true, and state which of both was first.

In:  the output of `fit_scaling_law` with forecasts, and outputs of trainings by the labels of those forecasts.
Out: `checked.csv`, a row for each training: forecast, intervals, result, error, and `made`;
     `forecast.html`, a page with the same.

A fit with `forecasts` never reads their trainings, so it can be written before they begin. `made` compares the time at
which the fit was finished with the first attempt at the training: "before", "during", or "after" its result existed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marin_assets.stages.report.records import ReportError, StepRecord, read_records
from marin_assets.stages.report.report import template
from marin_assets.stages.report.scaling_runs.interval_chart import draw_interval
from marin_assets.stages.report.scaling_runs.rows_csv import rows_csv
from marin_assets.stages.report.scaling_runs.run_row import ModelParts, check_counting, run_rows
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import read_json, write_bytes
from marin_resources.storage.output.attempts import latest_attempt, read_attempt
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

KINDS = ("csv", "html")

TABLE, PAGE = "checked.csv", "forecast.html"
FIT, FORECASTS = "fit.json", "forecasts.csv"
"""Files of `fit_scaling_law`."""
SAME = 0.01
"""Share by which params and tokens of a training may differ from those that were forecast."""
MADE = {
    "before": "before the training began",
    "during": "while it trained",
    "after": "after its result existed",
    "unknown": "at a time that is not recorded",
}


@dataclass(frozen=True, kw_only=True)
class CheckForecastsConfig:
    fit_path: str
    """Output of a fit, whose `forecasts` have the labels of the runs."""
    runs: dict[str, str]
    """Label -> output path of a training."""
    models: dict[str, ModelParts] = field(default_factory=lambda: versioned({}))
    """Label -> parts of its model."""
    output_path: str = THIS_OUTPUT_PATH
    loss: str = versioned("loss_end")
    """The loss that the law is of, as in the table of its runs."""
    params: str = versioned("with_head")
    """The way in which that table counts params."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, lambda config: check_counting(config.params, config.models, config.runs), name)


def check_forecasts(config: CheckForecastsConfig) -> dict[str, Any]:
    """Compare them.

    Returns forecasts (rows), inside (how many results are within the interval of a run), late (how many forecasts were
    not made before their training began), worst_error (the largest, as a share of the loss), doubts (sentences) and
    report. Raises ReportError for a label that the fit does not forecast, and for a training of another size.
    """
    check_counting(config.params, config.models, config.runs)
    fit = read_records({"fit": config.fit_path})["fit"]
    if not (fit.has(FIT) and fit.has(FORECASTS)):
        raise ReportError(f"{config.fit_path!r} has no {FORECASTS!r}, expected the output of fit_scaling_law.")
    confidence = read_json(join(fit.path, FIT))["method"]["confidence"]
    forecasts = {row["label"]: row for row in fit.csv_rows(FORECASTS)}
    records = read_records(config.runs)
    rows = [
        _compared(row, _forecast_of(row, forecasts), _made(fit, records[row["label"]]))
        for row in run_rows(config.runs, config.models, config.loss, config.params)
    ]
    doubts = [sentence for row in rows for sentence in _doubts(row, confidence)]
    write_bytes(join(config.output_path, TABLE), rows_csv(rows))
    page = template("forecast.html.j2", Path(__file__).parent).render(
        title="Forecast and result",
        rows=rows,
        doubts=doubts,
        share=f"{confidence:.0%}",
        loss=config.loss,
        made=MADE,
        chart=draw_interval,
    )
    write_bytes(join(config.output_path, PAGE), page.encode("utf-8", "backslashreplace"))
    return {
        "forecasts": rows,
        "inside": sum(row["inside"] for row in rows),
        "late": sum(row["made"] != "before" for row in rows),
        "worst_error": max(abs(row["error"]) for row in rows),
        "doubts": [{"warning": doubt} for doubt in doubts],
        "report": PAGE,
    }


def _forecast_of(row: Mapping[str, Any], forecasts: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """The numbers of the forecast of a run, which has its size."""
    label = row["label"]
    if label not in forecasts:
        raise ReportError(f"The fit has no forecast {label!r}, {expected_one_of(label, forecasts, 'forecasts')}")
    columns = ("params", "tokens", "loss", "low", "high", "run_low", "run_high")
    numbers = {name: float(forecasts[label][name]) for name in columns}
    for name in ("params", "tokens"):
        if abs(numbers[name] / row[name] - 1) > SAME:
            raise ReportError(
                f"The forecast {label!r} is of {numbers[name]:.6g} {name}, and its training has {row[name]:.6g}, "
                "expected the same. Forecast the run that is trained, with params counted in the same way."
            )
    return numbers


def _compared(row: Mapping[str, Any], forecast: Mapping[str, float], made: str) -> dict[str, Any]:
    measured = row["loss"]
    return {
        **{name: row[name] for name in ("label", "params", "tokens", "flops")},
        **{name: forecast[name] for name in ("low", "high", "run_low", "run_high")},
        "forecast": forecast["loss"],
        "measured": measured,
        "error": forecast["loss"] / measured - 1,
        "inside": forecast["run_low"] <= measured <= forecast["run_high"],
        "made": made,
        "output": row["output"],
    }


def _made(fit: StepRecord, training: StepRecord) -> str:
    """One of MADE. The first attempt counts, and the first that had a result: a training may be computed again."""
    forecast_at = _time(fit.record.finished_at)
    attempts = _attempts(training)
    began = _first([mark.get("started_at") for mark in attempts] or [training.record.started_at])
    results = [mark.get("finished_at") for mark in attempts if mark.get("outcome") == "success"]
    finished = _first(results or [training.record.finished_at])
    if forecast_at is None or began is None or finished is None:
        return "unknown"
    return "before" if forecast_at <= began else "during" if forecast_at <= finished else "after"


def _attempts(record: StepRecord) -> list[dict[str, Any]]:
    attempts = []
    for number in range(1, latest_attempt(record.own_path) + 1):
        try:
            attempts.append(read_attempt(record.own_path, number))
        except FileNotFoundError:
            continue  # the number of an attempt that never began
    return attempts


def _first(times: Sequence[Any]) -> datetime | None:
    return min((time for time in map(_time, times) if time is not None), default=None)


def _time(text: Any) -> datetime | None:
    """A time of a record, in UTC if it names no zone; None if it is none."""
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _doubts(row: Mapping[str, Any], confidence: float) -> list[str]:
    sentences = []
    if row["made"] != "before":
        sentences.append(
            f"The forecast of {row['label']!r} was made {MADE[row['made']]}, so it is no evidence that the law "
            "forecasts."
        )
    if not row["inside"]:
        sentences.append(
            f"The loss of {row['label']!r} is {row['measured']:.4f}, outside of the {confidence:.0%} interval of a "
            f"run, {row['run_low']:.4f} to {row['run_high']:.4f}."
        )
    return sentences
