"""The files of a fit: their content, and the law that is read back from them to forecast with.

read_fit(path).loss(params=7e9, tokens=4e12)      the loss of a run
read_fit(path).optimum(flops=1e24)                the best run of a budget
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.law.fit import Fit
from marin_assets.stages.scaling.law.forecast import Forecaster, Interval, Optimum
from marin_assets.stages.scaling.law.law import PARAMETERS, Law
from marin_assets.stages.scaling.law.parabolas import Budget
from marin_assets.stages.scaling.runs import Run
from marin_assets.stages.scaling.tables import plain
from marin_resources.storage.files import exists, read_bytes, read_json
from marin_resources.storage.paths import join

FORMAT_VERSION = 1
FIT, RESAMPLES = "fit.json", "resamples.csv"
FORMULA = "loss = E + A / params^alpha + B / tokens^beta"
RESIDUAL = "residual"
"""Column of resamples.csv: the log residual of a single run, drawn for this resample."""
RESAMPLE_COLUMNS = (*PARAMETERS, RESIDUAL)
COVARIANCE_OF = ("E", "log A", "log B", "alpha", "beta")
"""A and B vary by factors, so their logs have a covariance."""


def read_fit(path: str) -> Forecaster:
    """Read the law, its resamples and how its budgets are counted from the output of a fit. Raises ScalingError."""
    import numpy as np

    file = join(path, FIT)
    if not exists(file):
        raise ScalingError(f"{path!r} has no {FIT!r}, expected the output of fit_scaling_law. Pass such a step.")
    content = read_json(file)
    if content.get("format_version") != FORMAT_VERSION or content.get("formula") != FORMULA:
        raise ScalingError(
            f"{file!r} has the format version {content.get('format_version')!r} and the formula "
            f"{content.get('formula')!r:.80}, expected {FORMAT_VERSION} and {FORMULA!r}. Fit it again."
        )
    rows = list(csv.reader(read_bytes(join(path, RESAMPLES)).decode().splitlines()))
    columns = dict(zip(rows[0], np.array(rows[1:], float).T, strict=True))
    return Forecaster(
        law=Law(*(content["parameters"][name]["value"] for name in PARAMETERS)),
        resamples=Law(*(columns[name] for name in PARAMETERS)),
        drawn_residuals=columns[RESIDUAL],
        confidence=content["method"]["confidence"],
        flops_per_parameter_token=content["method"]["flops_per_parameter_token"],
    )


def forecaster_of(fit: Fit, flops_per_parameter_token: float) -> Forecaster:
    """Return what `read_fit` returns of the files of this fit."""
    return Forecaster(
        law=fit.law,
        resamples=fit.resamples,
        drawn_residuals=fit.drawn_residuals,
        confidence=fit.confidence,
        flops_per_parameter_token=flops_per_parameter_token,
    )


def fit_content(
    fit: Fit, runs: Sequence[Run], method: Mapping[str, Any], optima: Sequence[Optimum], warnings: Sequence[str]
) -> dict[str, Any]:
    """The content of fit.json."""
    import numpy as np

    largest = int(np.argmax(np.abs(fit.residuals)))
    ranges = {name: [getattr(run, name) for run in runs] for name in ("params", "tokens", "flops")}
    ranges["loss"] = [run.values["loss"] for run in runs]
    drawn = fit.resamples
    logs = np.stack([drawn.E, np.log(drawn.A), np.log(drawn.B), drawn.alpha, drawn.beta])
    return {
        "format_version": FORMAT_VERSION,
        "formula": FORMULA,
        "method": {"name": "robust variable projection", **method},
        "runs": {"count": len(runs), **{name: [min(of), max(of)] for name, of in ranges.items()}},
        "parameters": {name: estimate(fit, getattr(fit.law, name), getattr(drawn, name)) for name in PARAMETERS},
        "exponents": {name: estimate(fit, getattr(fit.law, name), getattr(drawn, name)) for name in ("a", "b")},
        "covariance": {"names": list(COVARIANCE_OF), "matrix": [[plain(c) for c in row] for row in np.cov(logs)]},
        "objective": plain(fit.objective),
        "residual": {
            "rms": plain(np.sqrt(np.mean(fit.residuals**2))),
            "largest": plain(fit.residuals[largest]),
            "largest_run": runs[largest].label,
        },
        "second_opinion": {
            "name": "L-BFGS",
            "parameters": {name: plain(value) for name, value in fit.second.values().items()},
            "exponents": {"a": plain(fit.second.a), "b": plain(fit.second.b)},
            "objective": plain(fit.second_objective),
        },
        "parabolas": _parabolas(fit),
        "optima": [optimum_content(optimum) for optimum in optima],
        "warnings": list(warnings),
    }


def resample_rows(fit: Fit) -> list[dict[str, Any]]:
    """The rows of resamples.csv."""
    columns = {**fit.resamples.values(), RESIDUAL: fit.drawn_residuals}
    return [{name: float(values[row]) for name, values in columns.items()} for row in range(len(fit.drawn_residuals))]


def optimum_content(optimum: Optimum) -> dict[str, Any]:
    return {"flops": optimum.flops} | {
        name: interval_content(getattr(optimum, name)) for name in ("params", "tokens", "tokens_per_param", "loss")
    }


def interval_content(interval: Interval) -> dict[str, float]:
    return {name: plain(value) for name, value in asdict(interval).items()}


def estimate(fit: Fit, value: Any, drawn: Any) -> dict[str, float]:
    """A parameter with its standard error and interval, of its values in the resamples of a fit."""
    low, high = fit.interval(drawn)
    return {"value": plain(value), "error": plain(fit.error(drawn)), "low": plain(low), "high": plain(high)}


def _parabolas(fit: Fit) -> dict[str, Any]:
    b, drawn = fit.parabolas.exponent, fit.parabolas.exponents
    budgets = [_budget(budget) for budget in fit.parabolas.budgets]
    if b is None:
        return {"budgets": budgets, "a": None, "b": None}
    low, high = map(plain, fit.interval(drawn)) if len(drawn) else (None, None)
    of_a = {
        "value": plain(1 - b),
        "low": None if high is None else plain(1 - high),
        "high": None if low is None else plain(1 - low),
    }
    return {"budgets": budgets, "a": of_a, "b": {"value": plain(b), "low": low, "high": high}}


def _budget(budget: Budget) -> dict[str, Any]:
    vertex = {"tokens": plain(budget.tokens), "loss": plain(budget.loss)} if budget.opens_upwards else {}
    return {
        "flops": plain(budget.flops),
        "runs": len(budget.members),
        "curvature": plain(budget.coefficients[2]),
        "tokens": vertex.get("tokens"),
        "loss": vertex.get("loss"),
        "inside": budget.counts,
    }
