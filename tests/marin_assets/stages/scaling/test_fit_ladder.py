"""Scores of a large model are forecast from checkpoints of small ones, which alone the fit reads."""

from __future__ import annotations

import csv
import json
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import olmo_ladder
import pytest
from scaling_runs import CHINCHILLA, write_table

from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.fit_config import Forecast
from marin_assets.stages.scaling.fit_ladder import fit_ladder
from marin_assets.stages.scaling.ladder.curve import Curve, fit_curve
from marin_assets.stages.scaling.ladder.ladder_config import FitLadderConfig
from marin_assets.step.values import unwrap_versioned_value

QUICK = "hellaswag_val"
TASKS = [pytest.param(task, marks=[] if task == QUICK else pytest.mark.long) for task in olmo_ladder.SCORES]


def ladder(runs_path: str, output: Path, **fields: Any) -> dict[str, Any]:
    given = {"resamples": 20, "output_path": str(output), "runs_path": runs_path, **fields}
    return fit_ladder(unwrap_versioned_value(FitLadderConfig(**given)))


def of_task(task: str) -> dict[str, Any]:
    columns = {"label": "run", "loss": f"{task}_bpb", "score": f"{task}_acc"}
    return {"columns": columns, "targets": olmo_ladder.TARGETS}


@pytest.mark.parametrize("task", TASKS)
def test_the_score_of_a_large_model_is_forecast_as_by_another_program(task: str, tmp_path: Path) -> None:
    result = ladder(olmo_ladder.TABLE, tmp_path / "out", **of_task(task))
    assert (result["runs"], result["checkpoints"]) == (16, 153)
    forecast = result["forecasts"][1]
    measured, error_percent = olmo_ladder.SCORES[task]
    assert forecast["label"] == "13B-5T"
    assert forecast["measured"] == pytest.approx(measured, abs=6e-4)
    assert 100 * forecast["score"] == pytest.approx(100 * measured * (1 + error_percent / 100), abs=1.5)
    page = unescape((tmp_path / "out/ladder.html").read_text())
    assert all(of["warning"] in page for of in result["doubts"])
    assert (tmp_path / "out/plots/ladder.png").read_bytes().startswith(b"\x89PNG")


def test_the_fit_never_reads_the_target(tmp_path: Path) -> None:
    """Results that are wrong, or missing, change no byte of what is fitted. Nor does a second run."""
    rows = list(csv.DictReader(Path(olmo_ladder.TABLE).read_text().splitlines()))
    for name, loss, score in (("planted", "9.9", "0.01"), ("not yet", "", "")):
        for row in rows:
            if row["run"] in olmo_ladder.TARGETS:
                row |= {"hellaswag_val_bpb": loss, "hellaswag_val_acc": score}
        table = write_table(tmp_path / f"{name}.csv", rows)
        result = ladder(table, tmp_path / name, **of_task(QUICK))
        assert result["forecasts"][0]["measured"] == (float(score) if score else None)
    for file in ("ladder.json", "checkpoints.csv"):
        written = (tmp_path / "planted" / file).read_bytes()
        assert written == (tmp_path / "not yet" / file).read_bytes()
        assert not any(label in written.decode() for label in olmo_ladder.TARGETS)


def made_checkpoints() -> list[dict[str, Any]]:
    """Eight runs of four checkpoints each, with scores on a given curve."""
    curve = Curve(0.25, 0.95, 3.0, 2.6)
    rows = []
    for number, (params, ratio) in enumerate((n, r) for n in (1e7, 5e7, 3e8, 2e9) for r in (20, 100)):
        for share in (0.05, 0.3, 0.6, 1.0):
            tokens = params * ratio * share
            loss = float(CHINCHILLA.loss(params, tokens)) * (1 if share > 0.1 else 1.3)
            score = 0.99 if share < 0.1 else float(curve.score(loss))
            rows.append({"label": f"<i>{number}</i>", "params": params, "tokens": tokens, "loss": loss, "score": score})
    return rows


@pytest.mark.long
def test_scores_on_a_curve_are_forecast_exactly_without_the_beginnings_of_runs(tmp_path: Path) -> None:
    table = write_table(tmp_path / "runs.csv", made_checkpoints())
    result = ladder(table, tmp_path / "out", forecasts=(Forecast(label="planned", params=7e9, tokens=1e12),))
    expected = Curve(0.25, 0.95, 3.0, 2.6).score(CHINCHILLA.loss(7e9, 1e12))
    assert result["forecasts"][0]["score"] == pytest.approx(expected, abs=1e-3)
    assert result["checkpoints"] == 24
    page = (tmp_path / "out/ladder.html").read_text()
    assert "<i>" not in page
    assert json.loads((tmp_path / "out/ladder.json").read_text())["curve"]["middle"]["value"] == pytest.approx(2.6)


REFUSED = {
    "percents": ({"score": 34.5}, {}, "has the score 34.5, expected one from 0 to 1. Divide percents by 100"),
    "no score": ({"score": ""}, {}, "has score = '', expected a number from 0"),
    "a row twice": ({"tokens": 2e8}, {}, "has two rows at 200,000,000 tokens"),
    "two sizes": ({"params": 3e7}, {}, "has checkpoints of .* parameters, expected one number"),
    "a typo": ({}, {"targets": ("7B",)}, "targets names '7B'"),
    "burn_in": ({}, {"burn_in": 1.0}, "burn_in is 1.0, expected a share from 0 to below 1"),
    "forecast": ({}, {"forecasts": (Forecast(flops=1e21),)}, "expected params and tokens alone"),
    "columns": ({}, {"columns": {"scores": "acc"}}, "columns names 'scores'.* Did you mean 'score'"),
}


@pytest.mark.parametrize(("change", "fields", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_ladder_is_refused_in_a_sentence(
    change: dict[str, Any], fields: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    rows = made_checkpoints()
    rows[2] |= change
    with pytest.raises(ScalingError, match=sentence):
        ladder(write_table(tmp_path / "runs.csv", rows), tmp_path / "out", **fields)


def test_a_curve_is_between_zero_and_one_also_where_scores_are_noise() -> None:
    random = np.random.default_rng(0)
    losses, scores = random.uniform(1, 3, 30), random.uniform(0.2, 0.3, 30)
    curve, curves = fit_curve(losses, scores, random.multinomial(30, np.full(30, 1 / 30), 20).astype(float), 0.01)
    for of in (curve, curves):
        scores = of.score(np.array([[-5.0], [0.0], [2.0], [9.0]]))
        assert scores.min() >= 0
        assert scores.max() <= 1
