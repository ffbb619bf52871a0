"""The page of a fit of a scaling law."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from marin_assets.stages.scaling.pages.parts import doubts, interval, number, page_of, picture, table

MOST_ROWS = 500
DESCRIPTIONS = {
    "law": ("The law", "The fitted loss over parameters and tokens, and by tokens for each size"),
    "parabolas": ("Parabolas", "A parabola of the loss for each budget, and the best tokens by budget"),
    "forecasts": ("Forecasts", "The least loss by FLOPs with its interval, the runs, and the forecasts"),
    "residuals": ("Residuals", "Residuals by parameters and by tokens"),
    "influence": ("Influence", "Changes of the exponents without a run"),
}


def fit_page(
    content: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    forecasts: Sequence[Mapping[str, Any]],
    pictures: Mapping[str, bytes],
) -> bytes:
    """Return the page of fit.json, and of the rows of runs.csv and forecasts.csv."""
    return page_of("Scaling law", _page(content, rows, forecasts, pictures))


def _page(
    content: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    forecasts: Sequence[Mapping[str, Any]],
    pictures: Mapping[str, bytes],
) -> Iterator[str]:
    values = {name: of["value"] for name, of in content["parameters"].items()}
    method, share = content["method"], f"{content['method']['confidence']:.0%}"
    yield (
        f"<p><b>loss = {values['E']:.4g} + {values['A']:.4g} / params<sup>{values['alpha']:.4g}</sup> + "
        f"{values['B']:.4g} / tokens<sup>{values['beta']:.4g}</sup></b>, of {len(rows)} runs, with residuals of "
        f"{content['residual']['rms']:.2%} (root mean square).</p>"
    )
    yield from doubts(content["warnings"])
    yield "<h2>Parameters</h2>"
    second = content["second_opinion"]
    yield from table(
        ["", "value", "error", f"{share} interval", "by L-BFGS"],
        [
            [name, number(of["value"]), number(of["error"], 3), interval(of), number(theirs)]
            for (name, of), theirs in zip(
                [*content["parameters"].items(), *content["exponents"].items()],
                [*second["parameters"].values(), *second["exponents"].values()],
                strict=True,
            )
        ],
    )
    yield (
        '<p class="quiet">a and b are the exponents of the best parameters and tokens over compute. The intervals are '
        f"those of {method['resamples']:,} resamples of the runs.</p>"
    )
    yield from _methods(content, share)
    yield f"<h2>The best model of a budget</h2><p>C = {method['flops_per_parameter_token']:g} × params × tokens.</p>"
    names = ("params", "tokens", "tokens_per_param", "loss")
    yield from table(
        ["FLOPs", *(cell for name in names for cell in (name.replace("_", " "), f"{share} interval"))],
        [
            [number(of["flops"]), *(cell for name in names for cell in (number(of[name]["value"]), interval(of[name])))]
            for of in content["optima"]
        ],
    )
    if forecasts:
        yield "<h2>Forecasts</h2><p>Of runs that the fit has not read.</p>"
        yield from table(
            ["run", "params", "tokens", "loss", f"{share} of the law", f"{share} of a run", "measured", "error"],
            [_forecast(of) for of in forecasts],
        )
    for name, data in pictures.items():
        title, description = DESCRIPTIONS[name]
        yield f"<h2>{title}</h2>{picture(data, description)}"
    yield from _runs(rows)
    yield (
        f'<p class="quiet">{escape(method["name"])}: the sum of Huber\'s losses of the log residuals with delta '
        f"{method['delta']:g}; seed {method['seed']}. <code>fit.json</code> has all of it.</p>"
    )


def _methods(content: Mapping[str, Any], share: str) -> Iterator[str]:
    """The exponents by each method, and the parabolas of the budgets."""
    parabolas, second = content["parabolas"], content["second_opinion"]["exponents"]
    law, beside = content["exponents"], [parabolas["a"], parabolas["b"]]
    yield "<h2>Methods</h2>"
    yield from table(
        ["", "a (params)", f"{share} interval", "b (tokens)", f"{share} interval"],
        [
            ["the law, by variable projection", *_pair(law["a"]), *_pair(law["b"])],
            ["the law, by L-BFGS", number(second["a"]), "", number(second["b"]), ""],
            ["parabolas of budgets", *(cell for of in beside for cell in _pair(of))],
        ],
    )
    if not parabolas["budgets"]:
        yield '<p class="quiet">No budget has runs of three sizes, so none has a parabola.</p>'
        return
    yield from table(
        ["budget (FLOPs)", "runs", "vertex: tokens", "loss", "counts"],
        [
            [number(of["flops"]), number(of["runs"]), number(of["tokens"]), number(of["loss"]), _verdict(of)]
            for of in parabolas["budgets"]
        ],
    )


def _pair(of: Mapping[str, Any] | None) -> list[str]:
    return ["–", ""] if of is None else [number(of["value"]), interval(of)]


def _verdict(budget: Mapping[str, Any]) -> str:
    if budget["curvature"] <= 0:
        return "no: opens downwards"
    return "yes" if budget["inside"] else "no: outside of its runs"


def _forecast(of: Mapping[str, Any]) -> list[str]:
    measured, error = of["measured"], of["error"]
    outside = measured is not None and not of["run_low"] <= measured <= of["run_high"]
    return [
        str(of["label"]),
        *(number(of[name]) for name in ("params", "tokens", "loss")),
        interval({"low": of["low"], "high": of["high"]}),
        interval({"low": of["run_low"], "high": of["run_high"]}),
        number(measured) + (" (outside)" if outside else ""),
        "–" if error is None else f"{error:+.2%}",
    ]


def _runs(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    more = f", the first {MOST_ROWS} of {len(rows):,}" if len(rows) > MOST_ROWS else ""
    yield f"<h2>Runs{more}</h2>"
    yield from table(
        ["run", "params", "tokens", "FLOPs", "loss", "fitted", "residual", "influence"],
        [
            [
                str(row["label"]),
                *(number(row[name]) for name in ("params", "tokens", "flops", "loss", "fitted")),
                f"{row['residual']:+.2%}",
                f"{row['influence']:+.2f}",
            ]
            for row in rows[:MOST_ROWS]
        ],
    )
    yield (
        '<p class="quiet">Residual: the measured loss above the law. Influence: the largest change of an exponent '
        "without the run, in standard errors.</p>"
    )
