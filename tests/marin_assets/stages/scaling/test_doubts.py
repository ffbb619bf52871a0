"""A doubtful fit says so in one sentence, and one that cannot be is refused in one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scaling_runs import CHINCHILLA, isoflop_runs, rows_of

from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.fit_config import Forecast
from marin_assets.stages.scaling.law.doubts import doubts_of
from marin_assets.stages.scaling.law.fit import fit_law
from marin_assets.stages.scaling.law.law import Law

Fit = Callable[..., dict[str, Any]]
Rows = list[dict[str, Any]]


def changed(rows: Rows, number: int, **values: Any) -> Rows:
    return [{**row, **values} if place == number else row for place, row in enumerate(rows)]


def without_name(rows: Rows, name: str) -> Rows:
    return [{other: value for other, value in row.items() if other != name} for row in rows]


REFUSED: dict[str, tuple[Callable[[Rows], Rows], dict[str, Any], str]] = {
    "too few runs": (lambda rows: rows[:6], {}, "has 6 runs to fit, expected at least 7"),
    "one size": (lambda rows: [{**row, "params": 1e8} for row in rows], {}, "have 1 value of params, expected at"),
    "not finite": (lambda rows: changed(rows, 3, loss="nan"), {}, "has loss = 'nan', expected a positive number"),
    "negative": (lambda rows: changed(rows, 3, tokens=-5), {}, "has tokens = '-5', expected a positive number"),
    "empty cell": (lambda rows: changed(rows, 3, params=None), {}, "line 5, the run .*, has params = ''"),
    "text": (lambda rows: changed(rows, 3, loss="2,5"), {}, "has loss = '2,5', expected a positive number"),
    "a run twice": (lambda rows: [*rows, rows[4]], {}, "has 2 rows, expected one for each finished run"),
    "two names": (
        lambda rows: [*rows, {**rows[4], "label": "copy"}],
        {},
        "and 'copy' have the same params, tokens and loss",
    ),
    "a column is missing": (
        lambda rows: without_name(rows, "params"),
        {},
        "The column of params is 'params', which the table lacks, expected one of",
    ),
    "a typo in a column": (
        lambda rows: rows,
        {"columns": {"loss": "lose"}},
        "is 'lose', which the table lacks.* Did you mean 'loss'?",
    ),
    "a typo in columns": (lambda rows: rows, {"columns": {"los": "loss"}}, "columns names 'los'.* Did you mean 'loss'"),
    "a typo in where": (lambda rows: rows, {"where": {"finale": 1}}, "where names the column 'finale'"),
    "nothing is left": (lambda rows: rows, {"where": {"flops": 5}}, "No run has 'flops' = 5, expected one of"),
    "a typo in held_out": (lambda rows: rows, {"held_out": ("1.0e+18, x 8",)}, "held_out names '1.0e.18, x 8'"),
    "all are held out": (
        lambda rows: rows,
        {"held_out": tuple(isoflop_runs()["label"])},
        "held_out names all runs",
    ),
    "beyond floats": (lambda rows: changed(rows, 3, tokens=1e300), {}, "a positive number of 1e-12 to 1e.40"),
    "checkpoints": (
        lambda rows: [{**rows[0], "label": str(n), "tokens": 1e9 + n} for n in range(3001)],
        {},
        "has 3,001 runs, expected at most 3,000 finished ones",
    ),
    "delta": (lambda rows: rows, {"delta": 0.0}, "delta is 0.0, expected a positive number"),
    "confidence": (lambda rows: rows, {"confidence": 80.0}, "confidence is 80.0, expected a share between 0 and 1"),
    "resamples": (lambda rows: rows, {"resamples": 3}, "resamples is 3, expected 20 to 100,000"),
    "budget": (lambda rows: rows, {"budgets": (-1.0,)}, "A budget is -1.0, expected a positive number"),
    "forecast": (lambda rows: rows, {"forecasts": (Forecast(params=1e9),)}, "A forecast has params, expected params"),
    "another table": (lambda rows: rows, {"runs_digest": "0123"}, "is another one than when the step was created"),
}


@pytest.mark.parametrize(("change", "fields", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_table_or_a_config_without_a_law_is_refused_in_a_sentence(
    change: Callable[[Rows], Rows], fields: dict[str, Any], sentence: str, fitted: Fit
) -> None:
    with pytest.raises(ScalingError, match=sentence) as caught:
        fitted(change(rows_of(isoflop_runs())), **fields)
    assert "\n" not in str(caught.value)


def beyond_the_vertex(rows: Rows) -> Rows:
    """The first budget has its sizes above the best alone."""
    return [row for place, row in enumerate(rows) if place >= 4]


def upside_down(rows: Rows) -> Rows:
    return [{**row, "loss": 7.6 - row["loss"]} if place < 7 else row for place, row in enumerate(rows)]


def at_one_ratio(_: Rows) -> Rows:
    params = np.geomspace(1e7, 1e10, 20)
    return [
        {"label": f"{n:.1e}", "params": n, "tokens": 20 * n, "flops": 120 * n * n, "loss": CHINCHILLA.loss(n, 20 * n)}
        for n in params.tolist()
    ]


def without_an_effect(rows: Rows) -> Rows:
    return [{**row, "loss": 1.5 + 400 / row["params"] ** 0.34} for row in rows]


def one_far_run(rows: Rows) -> Rows:
    """Nothing but one run shows the effect of tokens beyond 3e9."""
    near = [row for row in rows if row["tokens"] < 3e9]
    far = {"label": "the far one", "params": 1e9, "tokens": 3e11, "flops": 1.8e21, "loss": 2.6}
    return [{**row, "loss": row["loss"] * (1 + 0.004 * (-1) ** place)} for place, row in enumerate([*near, far])]


def drifting(_: Rows) -> Rows:
    """Sizes that drift from the best: the parabolas have another exponent than the law."""
    return rows_of(isoflop_runs(Law(1.5, 5000.0, 20.0, 0.465, 0.155), drift=3.0, noise=1e-4))


DOUBTED: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "a vertex outside": (beyond_the_vertex, "The vertex of the budget 1e.18 is outside its runs, so it does not count"),
    "upside down": (upside_down, "The parabola of the budget 1e.18 opens downwards"),
    "one ratio": (at_one_ratio, "params and tokens change together"),
    "no effect": (without_an_effect, "The loss does not depend on tokens in these runs"),
    "a run that decides": (one_far_run, "Without the run 'the far one' .* standard errors away"),
    "two methods": (drifting, "The two methods differ by more than their intervals"),
    "another count of FLOPs": (
        lambda rows: [{**row, "flops": 9 * row["params"] * row["tokens"]} for row in rows],
        "The FLOPs of the runs are 9 times params times tokens",
    ),
    "a bound": (
        lambda rows: [{**row, "loss": 2 + 1e9 / row["params"] ** 1.2 + 1e35 / row["tokens"] ** 4} for row in rows],
        "beta is 3, at the bound of the search",
    ),
}


def doubts(rows: Rows, resamples: int = 50) -> list[str]:
    params, tokens, flops, loss = ([row[name] for row in rows] for name in ("params", "tokens", "flops", "loss"))
    fit = fit_law(params, tokens, flops, loss, delta=1e-3, resamples=resamples, seed=0, confidence=0.8)
    return doubts_of(fit, [row["label"] for row in rows], flops, 6.0)


@pytest.mark.parametrize(("change", "sentence"), DOUBTED.values(), ids=DOUBTED)
def test_a_doubtful_fit_has_a_sentence(change: Callable[[Rows], Rows], sentence: str) -> None:
    sentences = doubts(change(rows_of(isoflop_runs())))
    assert any(re.search(sentence, doubt) for doubt in sentences), sentences


@pytest.mark.parametrize("noise", [0.0, 0.002])
def test_a_sound_fit_has_no_doubt(noise: float) -> None:
    assert doubts(rows_of(isoflop_runs(noise=noise)), resamples=200) == []
