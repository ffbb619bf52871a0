"""A law is fitted to a table of runs: its files, its page, its forecasts."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import olmo_ladder
import pytest
from scaling_runs import CHINCHILLA, fit_table, isoflop_runs, rows_of

from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.fit_config import Forecast
from marin_assets.stages.scaling.fit_file import read_fit
from marin_assets.stages.scaling.runs import read_table, runs_of

Fit = Callable[..., dict[str, Any]]
QUICK = "hellaswag_val"
TASKS = [pytest.param(task, marks=[] if task == QUICK else pytest.mark.long) for task in olmo_ladder.PUBLISHED]
STRANGERS = ("<script>alert(1)</script>", "$\\frac{", "数据", "a" * 300)
BIG = {"label": "big & <b>bold</b>", "params": 7e9, "tokens": 2e12, "flops": 8.4e22}
FIELDS = {
    "held_out": (BIG["label"],),
    "forecasts": (Forecast(label="planned", params=7e9, tokens=2e12), Forecast(flops=1e23)),
    "budgets": (1e20, 1e23),
}


def rows_with_target(loss: float | str) -> list[dict[str, Any]]:
    """Runs of which four have labels of strangers, and one to hold out."""
    further = {"learning_rate": "3e-4", "fitted": "mine"}
    rows = [{**row, **further} for row in rows_of(isoflop_runs(noise=0.004))]
    for row, label in zip(rows, STRANGERS, strict=False):
        row["label"] = label
    return [*rows, {**BIG, "loss": loss, **further}]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a fit with everything."""
    folder = tmp_path_factory.mktemp("scaling") / "fit"
    result = fit_table(rows_with_target(float(CHINCHILLA.loss(7e9, 2e12))), folder, **FIELDS)
    (folder / "result").write_text(json.dumps(result))
    return folder


@pytest.fixture
def result(output: Path) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((output / "result").read_text())
    return stored


def test_fit_json_has_the_law_by_each_method_with_intervals(output: Path, result: dict[str, Any]) -> None:
    content = json.loads((output / "fit.json").read_text())
    for name, true in CHINCHILLA.values().items():
        of = content["parameters"][name]
        assert of["value"] == result[name]
        assert of["low"] < of["value"] < of["high"]
        assert of["value"] == pytest.approx(true, abs=4 * of["error"])
    assert content["exponents"]["a"]["value"] + content["exponents"]["b"]["value"] == pytest.approx(1)
    assert len(content["covariance"]["matrix"]) == len(content["covariance"]["names"]) == 5
    assert [budget["inside"] for budget in content["parabolas"]["budgets"]] == [True] * 5
    assert content["parabolas"]["b"]["low"] < content["parabolas"]["b"]["value"] < content["parabolas"]["b"]["high"]
    assert content["second_opinion"]["exponents"]["a"] == pytest.approx(result["a"], rel=1e-3)
    assert [optimum["flops"] for optimum in content["optima"]] == [1e20, 1e23]
    assert content["runs"]["count"] == result["runs"] == 35


def test_the_table_of_runs_has_residuals_influence_and_the_further_columns(output: Path) -> None:
    written = list(csv.DictReader((output / "runs.csv").open()))
    assert len(written) == 35
    assert {row["learning_rate"] for row in written} == {"3e-4"}
    assert {row["given_fitted"] for row in written} == {"mine"}
    for row in written:
        assert float(row["loss"]) / float(row["fitted"]) - 1 == pytest.approx(float(row["residual"]), abs=1e-3)
    assert max(abs(float(row["influence"])) for row in written) > 0.1


def test_the_table_of_a_fit_is_a_table_and_its_folder_is_none(output: Path) -> None:
    again = runs_of(read_table(str(output / "runs.csv")), {})
    assert len(again) == 35
    assert {run.row.values["learning_rate"] for run in again} == {"3e-4"}
    with pytest.raises(ScalingError, match=r"'.*fit\.json' is no list of objects, .* pass the table itself: step / "):
        read_table(str(output))


def test_a_stored_fit_forecasts_what_its_tables_have(output: Path, result: dict[str, Any]) -> None:
    stored = read_fit(str(output))
    _, of_run, best = result["forecasts"]
    again = stored.loss(7e9, 2e12)
    assert again.curve.value == pytest.approx(of_run["loss"], rel=1e-6)
    assert [again.curve.low, again.curve.high] == pytest.approx([of_run["low"], of_run["high"]], rel=1e-6)
    assert [again.run.low, again.run.high] == pytest.approx([of_run["run_low"], of_run["run_high"]], rel=1e-6)
    assert again.run.high - again.run.low > again.curve.high - again.curve.low
    optimum = stored.optimum(1e23)
    assert (optimum.params.value, optimum.tokens.value) == pytest.approx((best["params"], best["tokens"]), rel=1e-6)
    assert 6 * best["params"] * best["tokens"] == pytest.approx(1e23, rel=1e-6)
    assert result["optima"][1]["tokens_per_param"] == pytest.approx(best["tokens"] / best["params"], rel=1e-6)


def test_the_forecast_of_a_run_is_compared_with_its_loss(output: Path, result: dict[str, Any]) -> None:
    forecast = result["forecasts"][0]
    assert forecast["measured"] == pytest.approx(CHINCHILLA.loss(7e9, 2e12))
    assert forecast["error"] == pytest.approx(forecast["loss"] / forecast["measured"] - 1, abs=1e-6)
    assert forecast["run_low"] < forecast["measured"] < forecast["run_high"]
    assert " (outside)" not in (output / "fit.html").read_text()
    assert [row["label"] for row in csv.DictReader((output / "forecasts.csv").open())][:2] == [BIG["label"], "planned"]


def test_the_fit_never_reads_what_is_held_out(output: Path, fitted: Fit, tmp_path: Path) -> None:
    """Nor do equal runs make other bytes."""
    fitted(rows_with_target(9.0), "planted", **FIELDS)
    plots = [f"plots/{name}.png" for name in ("law", "parabolas", "residuals", "influence")]
    for file in ("fit.json", "runs.csv", "resamples.csv", *plots):
        assert (tmp_path / "planted" / file).read_bytes() == (output / file).read_bytes(), file
    assert "bold" not in (output / "fit.json").read_text() + (output / "runs.csv").read_text()
    assert " (outside)" in (tmp_path / "planted/fit.html").read_text()


@pytest.mark.long
def test_a_forecast_before_its_result_has_no_measured_loss(fitted: Fit) -> None:
    forecast = fitted(rows_with_target(""), **FIELDS)["forecasts"][0]
    assert (forecast["measured"], forecast["error"]) == (None, None)


@pytest.mark.long
def test_a_second_run_writes_the_same_bytes(output: Path, fitted: Fit, tmp_path: Path) -> None:
    result = fitted(rows_with_target(float(CHINCHILLA.loss(7e9, 2e12))), "again", **FIELDS)
    files = {str(file.relative_to(tmp_path / "again")) for file in (tmp_path / "again").rglob("*") if file.is_file()}
    assert files == {"fit.json", "runs.csv", "resamples.csv", "forecasts.csv", "fit.html", *result["plots"]}
    assert all((tmp_path / "again" / file).read_bytes() == (output / file).read_bytes() for file in files)


def test_labels_of_strangers_are_text_on_the_page(output: Path) -> None:
    page = (output / "fit.html").read_text()
    assert "<script" not in page
    assert "<b>bold" not in page
    assert all(label in unescape(page) for label in (*STRANGERS, BIG["label"]))


@pytest.mark.parametrize("task", TASKS)
def test_the_loss_of_a_large_model_is_forecast_as_published(task: str, fitted: Fit, tmp_path: Path) -> None:
    columns = {"label": "run", "loss": f"{task}_bpb"}
    result = fitted(olmo_ladder.TABLE, columns=columns, where={"final": 1}, held_out=olmo_ladder.TARGETS, resamples=20)
    assert result["runs"] == 16
    errors = {forecast["label"]: 100 * forecast["error"] for forecast in result["forecasts"]}
    assert errors["13B-5T"] == pytest.approx(olmo_ladder.PUBLISHED[task], abs=0.3)
    sentences = [of["warning"] for of in result["doubts"]]
    assert any("The FLOPs of the runs are 8.84 times params times tokens" in sentence for sentence in sentences)
    assert json.loads((tmp_path / "fit/fit.json").read_text())["warnings"] == sentences
    assert all(sentence in unescape((tmp_path / "fit/fit.html").read_text()) for sentence in sentences)


def test_what_is_no_output_of_a_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScalingError, match=r"has no 'fit.json', expected the output of fit_scaling_law"):
        read_fit(str(tmp_path))
    (tmp_path / "fit.json").write_text('{"format_version": 9}')
    with pytest.raises(ScalingError, match="format version 9"):
        read_fit(str(tmp_path))
