"""The table of the runs of a scaling law, and forecasts beside what came true."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.report.records import ReportError
from marin_assets.stages.report.scaling_runs.check_forecasts import CheckForecastsConfig, check_forecasts
from marin_assets.stages.report.scaling_runs.run_row import ModelParts
from marin_assets.stages.report.scaling_runs.tabulate_runs import TabulateRunsConfig, tabulate_runs
from marin_assets.stages.scaling.fit_config import FitScalingLawConfig, Forecast
from marin_assets.stages.scaling.fit_scaling_law import fit_scaling_law
from marin_assets.step.values import unwrap_versioned_value

VOCABULARY, WIDTH = 100, 10
LAYERS = {"s": 4_000, "m": 16_000, "l": 64_000, "xl": 256_000}
BUDGETS = (1e12, 3e12, 1e13)
TIED = {size: ModelParts(layers=count, active_layers=count, embeddings=1) for size, count in LAYERS.items()}


def loss_of(params: float, tokens: float) -> float:
    return 1.7 + 400 / params**0.5 + 400 / tokens**0.5


def parameters(size: str) -> int:
    return LAYERS[size] + VOCABULARY * WIDTH


def record(folder: Path, tokens: float, size: str, **changes: Any) -> str:
    """The output of a finished training."""
    folder.mkdir(parents=True)
    total = parameters(size)
    result = {
        "parameters": total,
        "tokens_seen": round(tokens),
        "flops": 6.0 * total * round(tokens),
        "loss_end": loss_of(total, tokens),
    }
    content = {
        "name": f"checkpoints/{folder.parent.name}",
        "output_path": str(folder),
        "started_at": "2026-11-01T10:00:00+00:00",
        "finished_at": "2026-11-01T12:00:00+00:00",
        "result": {**result, **changes},
    }
    (folder / ".executor_info").write_text(json.dumps(content))
    return str(folder)


def sweep_in(folder: Path) -> dict[str, Any]:
    runs, models, budgets = {}, {}, {}
    for budget in BUDGETS:
        for size in LAYERS:
            label = f"flops={budget:g},size={size}"
            runs[label] = record(folder / label, budget / (6 * parameters(size)), size)
            models[label], budgets[label] = TIED[size], budget
    return {"runs": runs, "models": models, "budgets": budgets}


@pytest.fixture
def sweep(tmp_path: Path) -> dict[str, Any]:
    """The config of a table of three budgets and four sizes."""
    return sweep_in(tmp_path / "runs")


def tabulated(output: Path, **fields: Any) -> dict[str, Any]:
    return tabulate_runs(unwrap_versioned_value(TabulateRunsConfig(output_path=str(output), **fields)))


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_a_row_has_the_counted_numbers_of_its_training(sweep: dict[str, Any], tmp_path: Path) -> None:
    result = tabulated(tmp_path / "out", **sweep)
    rows = rows_of(tmp_path / "out/runs.csv")
    assert [row["label"] for row in rows] == list(sweep["runs"])
    assert result["runs"] == 12
    row = rows[1]
    assert (row["params"], row["params_all"], row["params_without_embeddings"]) == ("17000", "17000", "16000")
    assert float(row["flops"]) == 6 * 17_000 * int(row["tokens"])
    assert float(row["share_6nd"]) == pytest.approx(1)
    assert float(row["loss"]) == loss_of(17_000, 1e12 / (6 * 17_000))


@pytest.mark.parametrize(("params", "count"), [("with_head", 9_000), ("without_embeddings", 8_000), ("all", 18_000)])
def test_params_are_counted_as_it_is_stated(tmp_path: Path, params: str, count: int) -> None:
    """Of a mixture of experts with two matrices of embeddings: those that a token meets."""
    path = record(tmp_path / "moe", 1e6, "m", parameters=18_000)
    parts = ModelParts(layers=16_000, active_layers=8_000, embeddings=2)
    tabulated(tmp_path / "out", runs={"moe": path}, models={"moe": parts}, params=params)
    [row] = rows_of(tmp_path / "out/runs.csv")
    assert row["params"] == row[f"params_{params}"] == str(count)


def test_the_budgets_without_an_inner_minimum_are_named_with_a_size_to_add(
    sweep: dict[str, Any], tmp_path: Path
) -> None:
    label = "flops=3e+12,size=xl"
    record(tmp_path / "better", 3e12 / (6 * parameters("xl")), "xl", loss_end=1.0)
    sweep["runs"][label] = str(tmp_path / "better")
    result = tabulated(tmp_path / "out", **sweep)
    edges = {budget["flops"]: (budget["edge"], budget["next_params"]) for budget in result["budgets"]}
    assert edges[3e12] == ("largest", round(257_000 * 257 / 65))
    inner = [flops for flops, (edge, further) in edges.items() if edge == "" and further is None]
    assert result["without_minimum"] == 3 - len(inner)
    [sentence] = [doubt["warning"] for doubt in result["doubts"] if "3e+12" in doubt["warning"]]
    assert "no inner minimum: its best run is the largest one" in sentence
    assert "Add a size of about 1,016,138" in sentence
    assert "at the largest size" in (tmp_path / "out/runs.html").read_text()


def test_a_sweep_that_was_planned_with_another_vocabulary_is_noticed(sweep: dict[str, Any], tmp_path: Path) -> None:
    sweep["budgets"] = {label: 2 * budget for label, budget in sweep["budgets"].items()}
    doubts = tabulated(tmp_path / "out", **sweep)["doubts"]
    assert "12 runs have other FLOPs than their budget" in doubts[0]["warning"]
    assert "another vocab_size" in doubts[0]["warning"]


def test_equal_trainings_are_equal_bytes(sweep: dict[str, Any], tmp_path: Path) -> None:
    for name in ("a", "b"):
        tabulated(tmp_path / name, **sweep)
    for name in ("runs.csv", "runs.html"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_metric_by_name_is_the_loss(tmp_path: Path) -> None:
    path = record(tmp_path / "x", 1e6, "s")
    (tmp_path / "x/metrics.jsonl").write_text(
        '{"step": 1, "eval/prose/loss": 4.5}\n{"step": 9, "eval/prose/loss": 3.5}\n'
    )
    tabulated(tmp_path / "out", runs={"x": path}, models={"x": TIED["s"]}, loss="eval/prose/loss")
    assert rows_of(tmp_path / "out/runs.csv")[0]["loss"] == "3.5"


@pytest.mark.parametrize(
    ("changes", "fields", "sentence"),
    [
        ({"loss_end": None}, {}, r"'x' at .* has no finite 'loss_end': it has diverged. Leave it out"),
        ({"flops": None}, {}, r"'x' at .* has flops = None in its record, expected a number above 0"),
        ({"tokens_seen": True}, {}, r"has tokens_seen = True"),
        ({}, {"loss": "los_end"}, r"has no metric 'los_end'"),
        ({}, {"params": "al"}, r"params is 'al', expected one of"),
        ({}, {"models": {}}, r"models lacks the run 'x'"),
    ],
)
def test_a_training_that_is_no_row_is_one_sentence(
    tmp_path: Path, changes: dict[str, Any], fields: dict[str, Any], sentence: str
) -> None:
    path = record(tmp_path / "x", 1e6, "s", **changes)
    with pytest.raises(ReportError, match=sentence):
        tabulated(tmp_path / "out", **{"runs": {"x": path}, "models": {"x": TIED["s"]}, **fields})


def test_a_training_that_is_not_finished_and_no_training_are_one_sentence_each(tmp_path: Path) -> None:
    (tmp_path / "begun").mkdir()
    with pytest.raises(ReportError, match=r"'x' has no record .* Run the step, or leave it out"):
        tabulated(tmp_path / "out", runs={"x": str(tmp_path / "begun")}, models={"x": TIED["s"]})
    with pytest.raises(ReportError, match=r"The table has no runs"):
        tabulated(tmp_path / "out", runs={})


TARGET_TOKENS = 4e13 / (6 * parameters("xl"))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit to the table of the sweep, with a forecast of a larger run."""
    folder = tmp_path_factory.mktemp("fitted")
    tabulated(folder / "table", **sweep_in(folder / "runs"))
    forecast = Forecast(label="target", params=float(parameters("xl")), tokens=float(round(TARGET_TOKENS)))
    config = FitScalingLawConfig(
        runs_path=str(folder / "table"), output_path=str(folder / "fit"), forecasts=(forecast,), resamples=20
    )
    fit_scaling_law(unwrap_versioned_value(config))
    return folder / "fit"


@pytest.fixture
def fit(fitted: Path, tmp_path: Path) -> Path:
    """The output of the fit, which was finished before the training began."""
    output = tmp_path / "scaling_laws/x"
    shutil.copytree(fitted, output)
    finished(output, "2026-11-01T09:00:00+00:00")
    return output


def finished(fit: Path, at: str) -> None:
    (fit / ".executor_info").write_text(json.dumps({"name": "scaling_laws/x", "finished_at": at, "result": {}}))


def checked(fit: Path, target: str, output: Path, **fields: Any) -> dict[str, Any]:
    given = {"runs": {"target": target}, "models": {"target": TIED["xl"]}, **fields}
    return check_forecasts(
        unwrap_versioned_value(CheckForecastsConfig(fit_path=str(fit), output_path=str(output), **given))
    )


def test_a_result_is_compared_with_a_forecast_that_was_before_it(fit: Path, tmp_path: Path) -> None:
    before = (fit / "forecasts.csv").read_bytes()
    target = record(tmp_path / "target", TARGET_TOKENS, "xl", loss_end=loss_of(parameters("xl"), TARGET_TOKENS) * 1.1)
    result = checked(fit, target, tmp_path / "out")
    [row] = result["forecasts"]
    assert row["made"] == "before"
    assert row["forecast"] == pytest.approx(loss_of(parameters("xl"), TARGET_TOKENS), rel=1e-3)
    assert row["error"] == pytest.approx(1 / 1.1 - 1, abs=1e-3)
    assert (result["inside"], result["late"]) == (0, 0)
    assert result["worst_error"] == pytest.approx(1 - 1 / 1.1, abs=1e-3)
    [doubt] = result["doubts"]
    assert "outside of the 80% interval of a run" in doubt["warning"]
    page = (tmp_path / "out/forecast.html").read_text()
    assert "outside of the interval" in page
    assert "The forecast was made before the training began." in page
    assert rows_of(tmp_path / "out/checked.csv")[0]["made"] == "before"
    assert (fit / "forecasts.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("at", "made"),
    [
        ("2026-11-01T10:00:00+00:00", "before"),
        ("2026-11-01T11:00:00+00:00", "during"),
        ("2026-11-01T14:00:00+02:00", "during"),
        ("2026-11-01T12:00:01+00:00", "after"),
        ("2026-11-01T12:00:01", "after"),
        ("yesterday", "unknown"),
    ],
)
def test_a_forecast_that_was_not_first_is_marked(fit: Path, tmp_path: Path, at: str, made: str) -> None:
    finished(fit, at)
    result = checked(fit, record(tmp_path / "target", TARGET_TOKENS, "xl"), tmp_path / "out")
    assert result["forecasts"][0]["made"] == made
    assert result["late"] == (made != "before")
    assert any("no evidence that the law forecasts" in doubt["warning"] for doubt in result["doubts"]) == (
        made != "before"
    )


def test_the_first_attempt_at_a_training_counts(fit: Path, tmp_path: Path) -> None:
    """It had a result at 8 o'clock, and was computed again at 10."""
    target = tmp_path / "target"
    path = record(target, TARGET_TOKENS, "xl")
    (target / ".marin/attempts").mkdir(parents=True)
    times = {1: ("07", "08"), 2: ("10", "12")}
    for attempt, (began, ended) in times.items():
        mark = {
            "format_version": 1,
            "attempt": attempt,
            "outcome": "success",
            **{
                name: f"2026-11-01T{hour}:00:00+00:00" for name, hour in (("started_at", began), ("finished_at", ended))
            },
        }
        (target / f".marin/attempts/{attempt}.json").write_text(json.dumps(mark))
    assert checked(fit, path, tmp_path / "out")["forecasts"][0]["made"] == "after"


def test_another_run_than_the_one_that_was_forecast_is_one_sentence(fit: Path, tmp_path: Path) -> None:
    target = record(tmp_path / "target", TARGET_TOKENS * 2, "xl")
    with pytest.raises(ReportError, match=r"The forecast 'target' is of .* tokens, and its training has"):
        checked(fit, target, tmp_path / "out")
    with pytest.raises(ReportError, match=r"The fit has no forecast 'big', expected one of the forecasts 'target'"):
        checked(fit, target, tmp_path / "out", runs={"big": target}, models={"big": TIED["xl"]})
    (fit / "forecasts.csv").unlink()
    with pytest.raises(ReportError, match=r"has no 'forecasts.csv', expected the output of fit_scaling_law"):
        checked(fit, target, tmp_path / "out")
