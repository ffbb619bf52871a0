"""Draw a fit: the law, the parabolas of its budgets, residuals, influence and forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.scaling.law.fit import Fit
from marin_assets.stages.scaling.law.forecast import Forecaster, Optimum
from marin_assets.stages.scaling.law.parabolas import Budget
from marin_assets.stages.scaling.pages.figure import new_figure, plot_label, png_of

MOST_CURVES = 10
"""Sizes, and budgets, with a curve each."""
MOST_BARS = 15
NAMED_RESIDUALS = 5
STEPS = 60


def draw_fit(
    fit: Fit,
    rows: Sequence[Mapping[str, Any]],
    forecaster: Forecaster,
    optima: Sequence[Optimum],
    forecasts: Sequence[Mapping[str, Any]],
) -> dict[str, bytes]:
    """Return PNGs by name: law, parabolas (if a budget has one), residuals, influence, forecasts."""
    parabolas = {"parabolas": draw_parabolas(fit)} if fit.parabolas.budgets else {}
    return {
        "law": draw_law(fit, forecaster),
        **parabolas,
        "forecasts": draw_forecasts(rows, forecaster, optima, forecasts),
        "residuals": draw_residuals(fit, rows),
        "influence": draw_influence(fit, rows),
    }


def draw_law(fit: Fit, forecaster: Forecaster) -> bytes:
    """Left the fitted surface over params and tokens with the best of each; right the loss by tokens of each size."""
    import numpy as np
    from matplotlib import colormaps

    points, figure = fit.points, new_figure(11, 4.2)
    surface, curves = figure.subplots(1, 2)
    params, tokens = (_widened(values) for values in (points.params, points.tokens))
    loss = fit.law.loss(params[None, :], tokens[:, None])
    lines = surface.contourf(params, tokens, loss, levels=18, cmap="viridis_r", alpha=0.85)
    surface.scatter(points.params, points.tokens, c="white", edgecolors="black", s=22, linewidths=0.8)
    budgets = np.geomspace(params[0] * tokens[0], params[-1] * tokens[-1], STEPS) * forecaster.flops_per_parameter_token
    best = np.array([[fit.law.best_params(c, forecaster.flops_per_parameter_token),
                      fit.law.best_tokens(c, forecaster.flops_per_parameter_token)] for c in budgets])  # fmt: skip
    surface.plot(best[:, 0], best[:, 1], color="crimson", linewidth=1.5, label="least loss of a budget")
    surface.set(xscale="log", yscale="log", xlabel="parameters", ylabel="tokens", title="Fitted loss")
    surface.set(xlim=(params[0], params[-1]), ylim=(tokens[0], tokens[-1]))
    surface.legend(fontsize="small", loc="upper left")
    figure.colorbar(lines, ax=surface, format="%.3g")
    sizes = np.unique(points.params)
    shown = sizes[np.unique(np.linspace(0, len(sizes) - 1, MOST_CURVES).round().astype(int))]
    for number, size in enumerate(shown):
        colour = colormaps["plasma"](number / max(1, len(shown) - 1) * 0.85)
        of_size = points.params == size
        curves.plot(tokens, fit.law.loss(size, tokens), color=colour, linewidth=1, label=f"{size:.3g}")
        curves.plot(points.tokens[of_size], points.loss[of_size], "o", color=colour, markersize=4)
    curves.set(xscale="log", xlabel="tokens", ylabel="loss", title="Loss by tokens, of each size")
    low, high = float(points.loss.min()), float(points.loss.max())
    margin = 0.1 * (high - low) or 0.01 * high
    curves.set_ylim(low - margin, high + 1.5 * margin)
    curves.legend(fontsize="small", title="parameters")
    curves.grid(alpha=0.3)
    return png_of(figure)


def draw_parabolas(fit: Fit) -> bytes:
    """Left the parabola of each budget with its vertex; right the best tokens by both methods."""
    import numpy as np
    from matplotlib import colormaps

    budgets, points = fit.parabolas.budgets, fit.points
    figure = new_figure(11, 4.2)
    curves, best = figure.subplots(1, 2)
    shown = [budgets[i] for i in np.unique(np.linspace(0, len(budgets) - 1, MOST_CURVES).round().astype(int))]
    for number, budget in enumerate(shown):
        colour, members = colormaps["plasma"](number / max(1, len(shown) - 1) * 0.85), list(budget.members)
        tokens = np.sort(points.tokens[members])
        line = np.geomspace(tokens[0], tokens[-1], STEPS)
        curves.plot(points.tokens[members], points.loss[members], "o", color=colour, markersize=4)
        curves.plot(line, _height(budget, line), color=colour, linewidth=1, label=f"{budget.flops:.3g}")
        if budget.counts:
            curves.plot(budget.tokens, budget.loss, "*", color=colour, markersize=12, markeredgecolor="black")
    curves.set(xscale="log", xlabel="tokens", ylabel="loss", title="A parabola for each budget (star: its vertex)")
    curves.legend(fontsize="small", title="FLOPs")
    flops = np.array([budget.flops for budget in budgets])
    counted = [budget for budget in budgets if budget.counts]
    best.plot([budget.flops for budget in counted], [budget.tokens for budget in counted], "*", markersize=10)
    law_tokens = [fit.law.best_tokens(c, _product_flops(fit, c, budgets)) for c in flops]
    best.plot(flops, law_tokens, color="crimson", label=f"the law, C^{fit.law.b:.3f}")
    if fit.parabolas.exponent is not None:
        x = np.log10([budget.flops for budget in counted])
        y = np.log10([budget.tokens for budget in counted])
        line = 10 ** (y.mean() + fit.parabolas.exponent * (np.log10(flops) - x.mean()))
        best.plot(flops, line, "--", color="tab:blue", label=f"the parabolas, C^{fit.parabolas.exponent:.3f}")
    best.set(xscale="log", yscale="log", xlabel="FLOPs", ylabel="tokens", title="Best tokens of a budget")
    best.legend(fontsize="small")
    for panel in (curves, best):
        panel.grid(alpha=0.3)
    return png_of(figure)


def draw_residuals(fit: Fit, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Residuals in percent by parameters and by tokens; the largest have their labels."""
    import numpy as np

    percent = 100 * fit.residuals
    figure = new_figure(11, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    largest = np.argsort(-np.abs(percent), kind="stable")[:NAMED_RESIDUALS]
    for panel, name in zip(panels, ("params", "tokens"), strict=True):
        values = getattr(fit.points, name)
        panel.axhline(0, color="0.4", linewidth=1)
        panel.plot(values, percent, "o", markersize=4)
        for run in largest:
            panel.annotate(
                plot_label(rows[run]["label"]), (values[run], percent[run]), fontsize="x-small", parse_math=False,
                xytext=(4, 3), textcoords="offset points",
            )  # fmt: skip
        panel.set(xscale="log", xlabel="parameters" if name == "params" else name)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("measured above the law, %")
    return png_of(figure)


def draw_influence(fit: Fit, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The runs without which an exponent changes most, in standard errors."""
    import numpy as np

    influence = fit.influence()
    strongest = np.max([np.abs(values) for values in influence.values()], axis=0)
    shown = np.argsort(-strongest, kind="stable")[:MOST_BARS][::-1]
    figure = new_figure(8, 0.8 + 0.34 * len(shown))
    panel = figure.subplots()
    places = np.arange(len(shown))
    for number, (name, values) in enumerate(influence.items()):
        panel.barh(places + 0.26 * (1 - number), values[shown], height=0.24, label=name)
    for bound in (-1, 1):
        panel.axvline(bound, color="0.4", linewidth=1, linestyle=":")
    panel.set_yticks(places, [plot_label(rows[run]["label"]) for run in shown], fontsize="small", parse_math=False)
    panel.set(xlabel="change of the exponent without the run, in standard errors")
    panel.legend(fontsize="small")
    panel.grid(alpha=0.3, axis="x")
    return png_of(figure)


def draw_forecasts(
    rows: Sequence[Mapping[str, Any]],
    forecaster: Forecaster,
    optima: Sequence[Optimum],
    forecasts: Sequence[Mapping[str, Any]],
) -> bytes:
    """The least loss of a budget with its interval, the runs, and forecasts with the intervals of single runs."""
    import numpy as np

    flops = [row["flops"] for row in rows]
    every = [*flops, *(optimum.flops for optimum in optima), *(forecast["flops"] for forecast in forecasts)]
    line = [forecaster.optimum(float(c)) for c in np.geomspace(min(every), max(every), STEPS)]
    figure = new_figure(9, 4.4)
    panel = figure.subplots()
    x = [optimum.flops for optimum in line]
    panel.fill_between(
        x, [of.loss.low for of in line], [of.loss.high for of in line], alpha=0.25, color="crimson", linewidth=0
    )
    panel.plot(x, [of.loss.value for of in line], color="crimson", label="least loss of a budget, with its interval")
    panel.plot(flops, [row["loss"] for row in rows], "o", markersize=4, color="0.35", label="runs")
    for number, forecast in enumerate(forecasts):
        bounds = [
            [max(0.0, forecast["loss"] - forecast["run_low"])],
            [max(0.0, forecast["run_high"] - forecast["loss"])],
        ]
        panel.errorbar(
            forecast["flops"], forecast["loss"], yerr=bounds, fmt="D", markersize=5, color="tab:blue", capsize=3,
            label=None if number else "forecast, with the interval of a run",
        )  # fmt: skip
        panel.annotate(
            plot_label(forecast["label"]), (forecast["flops"], forecast["run_high"]), fontsize="small",
            xytext=(0, 5), textcoords="offset points", parse_math=False, ha="center",
        )  # fmt: skip
    measured = [forecast for forecast in forecasts if forecast["measured"] is not None]
    if measured:
        panel.plot(
            [of["flops"] for of in measured], [of["measured"] for of in measured], "x", markersize=9, color="black",
            markeredgewidth=2, label="measured",
        )  # fmt: skip
    panel.set(xscale="log", xlabel="FLOPs", ylabel="loss")
    panel.legend(fontsize="small")
    panel.grid(alpha=0.3)
    return png_of(figure)


def _widened(values: Any) -> Any:
    """Numbers from half of the least to twice the most."""
    import numpy as np

    return np.geomspace(values.min() / 2, values.max() * 2, STEPS)


def _height(budget: Budget, tokens: Any) -> Any:
    import numpy as np

    c0, c1, c2 = budget.coefficients
    x = np.log10(tokens)
    return c0 + c1 * x + c2 * x * x


def _product_flops(fit: Fit, flops: float, budgets: Sequence[Budget]) -> float:
    """FLOPs by parameter and token in the runs of this budget: the law's best tokens are compared on its own count."""
    import numpy as np

    members = next(list(budget.members) for budget in budgets if budget.flops == flops)
    return float(np.median(flops / (fit.points.params[members] * fit.points.tokens[members])))
