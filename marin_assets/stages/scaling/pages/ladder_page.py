"""The plot and the page of a ladder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from marin_assets.stages.scaling.ladder.chain import Chain
from marin_assets.stages.scaling.pages.figure import new_figure, plot_label, png_of
from marin_assets.stages.scaling.pages.parts import doubts, interval, number, page_of, picture, table

STEPS = 200


def draw_ladder(fitted: Chain, rows: Sequence[Mapping[str, Any]], forecasts: Sequence[Mapping[str, Any]]) -> bytes:
    """Left the losses of the finished runs by the law; right scores by loss, the curve, and the forecasts."""
    import numpy as np

    figure = new_figure(11, 4.4)
    losses_panel, scores_panel = figure.subplots(1, 2)
    finished = [row for row in rows if row["final"]]
    losses_panel.plot([row["fitted_loss"] for row in finished], [row["loss"] for row in finished], "o", markersize=4)
    measured = [of for of in forecasts if of["measured_loss"] is not None]
    losses_panel.plot([of["loss"] for of in measured], [of["measured_loss"] for of in measured], "kx", markersize=8)
    ends = [row[name] for row in finished for name in ("fitted_loss", "loss")] + [of["loss"] for of in forecasts]
    losses_panel.plot([min(ends), max(ends)], [min(ends), max(ends)], color="0.4", linewidth=1)
    losses_panel.set(xlabel="loss by the law", ylabel="measured loss", title="Step 1: loss of the task")
    losses = [*fitted.losses, *(of["loss"] for of in forecasts)]
    margin = 0.05 * (max(losses) - min(losses))
    line = np.linspace(min(losses) - margin, max(losses) + margin, STEPS)
    drawn = fitted.curves.score(line[:, None])
    low, high = np.quantile(drawn, [(1 - fitted.law.confidence) / 2, (1 + fitted.law.confidence) / 2], axis=1)
    scores_panel.fill_between(line, low, high, color="crimson", alpha=0.2, linewidth=0)
    scores_panel.plot(line, fitted.curve.score(line), color="crimson", label="the curve, with its interval")
    scores_panel.plot(fitted.losses, fitted.scores, "o", markersize=3, color="0.35", label="checkpoints")
    for place, of in enumerate(forecasts):
        bounds = [[max(0.0, of["score"] - of["run_low"])], [max(0.0, of["run_high"] - of["score"])]]
        label = None if place else "forecast, with the interval of a run"
        scores_panel.errorbar(of["loss"], of["score"], yerr=bounds, fmt="D", color="tab:blue", capsize=3, label=label)
        name = plot_label(of["label"])
        scores_panel.annotate(
            name, (of["loss"], of["score"]), xytext=(7, -3), textcoords="offset points", parse_math=False
        )
    both = [of for of in measured if of["measured"] is not None]
    scores_panel.plot([of["measured_loss"] for of in both], [of["measured"] for of in both], "kx", markersize=8)
    scores_panel.set(xlabel="loss of the task", ylabel="score", title="Step 2: score by loss (cross: measured)")
    scores_panel.legend(fontsize="small")
    for panel in (losses_panel, scores_panel):
        panel.grid(alpha=0.3)
    return png_of(figure)


def ladder_page(content: Mapping[str, Any], forecasts: Sequence[Mapping[str, Any]], plot: bytes) -> bytes:
    """Return the page of ladder.json and of the rows of forecasts.csv."""
    return page_of("Ladder", _page(content, forecasts, plot))


def _page(content: Mapping[str, Any], forecasts: Sequence[Mapping[str, Any]], plot: bytes) -> Iterator[str]:
    share = f"{content['method']['confidence']:.0%}"
    yield (
        f"<p>{escape(content['formula'])}, of {content['runs']['count']} runs and {content['runs']['checkpoints']} "
        f"checkpoints. Residuals: {content['loss']['residual']['rms']:.2%} of the loss, "
        f"{100 * content['score_residual']:.2f} points of the score (root mean square).</p>"
    )
    yield from doubts(content["warnings"])
    if forecasts:
        yield "<h2>Forecasts</h2><p>Of runs that the fit has not read.</p>"
        heads = ["run", "params", "tokens", "loss", "measured", "score", f"{share} of the curve", f"{share} of a run"]
        yield from table([*heads, "measured", "error, points"], [_forecast(of) for of in forecasts])
    description = "The measured loss by the fitted one, and the score by the loss with the curve"
    yield f"<h2>Fits</h2>{picture(plot, description)}"
    parameters = {**content["loss"]["parameters"], **content["curve"]}
    yield from table(
        ["", "value", "error", f"{share} interval"],
        [[name, number(of["value"]), number(of["error"], 3), interval(of)] for name, of in parameters.items()],
    )
    yield (
        f'<p class="quiet">The intervals are those of {content["method"]["resamples"]:,} resamples of the runs, with '
        "all checkpoints of a run. <code>ladder.json</code> has all of it.</p>"
    )


def _forecast(of: Mapping[str, Any]) -> list[str]:
    outside = of["measured"] is not None and not of["run_low"] <= of["measured"] <= of["run_high"]
    return [
        str(of["label"]),
        *(number(of[name]) for name in ("params", "tokens", "loss", "measured_loss", "score")),
        interval({"low": of["low"], "high": of["high"]}),
        interval({"low": of["run_low"], "high": of["run_high"]}),
        number(of["measured"]) + (" (outside)" if outside else ""),
        "–" if of["error"] is None else f"{100 * of['error']:+.1f}",
    ]
