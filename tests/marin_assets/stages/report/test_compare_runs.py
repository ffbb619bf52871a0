"""Runs that differ in what was varied: which is the best, and what is kept of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.report.compare_runs import CompareRunsConfig, compare_runs
from marin_assets.stages.report.records import ReportError
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_bytes

LOSSES = {"lr=1": 3.5, "lr=2": 2.5, "lr=4": float("nan")}


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, str]:
    """Outputs of three trainings, of which the last diverged."""
    paths = {}
    for label, loss in LOSSES.items():
        folder = tmp_path / f"{label}-abc123"
        (folder / "hf").mkdir(parents=True)
        (folder / "hf/model.safetensors").write_bytes(label.encode() * 1000)
        (folder / "hf/config.json").write_text("{}")
        result = {"loss_end": loss if loss == loss else None, "scores": {"arc": {"acc": loss / 10}}, "steps": 10}
        (folder / ".executor_info").write_text(json.dumps({"name": label, "result": result}))
        rows = [{"step": step, "eval/prose/loss": loss + 1 / (step + 1)} for step in range(3)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths[label] = str(folder)
    return paths


def compared(runs: dict[str, str], output: Path | str, **fields: Any) -> dict[str, Any]:
    return compare_runs(unwrap_versioned_value(CompareRunsConfig(runs=runs, output_path=str(output), **fields)))


def test_the_best_is_first_and_its_model_is_copied(runs: dict[str, str], tmp_path: Path) -> None:
    result = compared(runs, tmp_path / "out", further=("eval/prose/loss",))
    assert (result["best"], result["best_run"], result["value"]) == ("lr=2", runs["lr=2"], 2.5)
    assert result["worst"] == 3.5
    assert list(result["values"]) == ["lr=2", "lr=1", "lr=4"]
    assert result["values"]["lr=1"]["eval/prose/loss"] == pytest.approx(3.5 + 1 / 3)
    assert result["not_finite"] == 1
    assert result["kept_files"] == 2
    assert (tmp_path / "out/hf/model.safetensors").read_bytes() == b"lr=2" * 1000
    rows = json.loads((tmp_path / "out/comparison.json").read_text())
    assert [row["run"] for row in rows] == ["lr=2", "lr=1", "lr=4"]
    assert rows[2]["loss_end"] is None
    assert (tmp_path / "out/plots/comparison.png").read_bytes().startswith(b"\x89PNG")


def test_the_goal_turns_the_order(runs: dict[str, str], tmp_path: Path) -> None:
    result = compared(runs, tmp_path / "out", metric="scores.arc.acc", goal="max", keep=())
    assert (result["best"], result["kept_files"]) == ("lr=1", 0)


def test_a_sweep_of_numbers_and_an_ablation_by_name_are_plotted(runs: dict[str, str], tmp_path: Path) -> None:
    varied = {label: {"lr": float(label[3:]), "width": 64} for label in runs}
    compared(runs, tmp_path / "lines", varied=varied)
    compared(runs, tmp_path / "bars", varied={label: {"mixture": label} for label in runs})
    pictures = [(tmp_path / name / "plots/comparison.png").read_bytes() for name in ("lines", "bars")]
    assert pictures[0] != pictures[1]


def test_it_reads_and_writes_a_bucket(runs: dict[str, str], gcs_prefix: str) -> None:
    output = f"{gcs_prefix}/comparisons/sweep-abc123"
    result = compared(runs, output)
    assert read_bytes(f"{output}/hf/model.safetensors") == b"lr=2" * 1000
    assert result["best"] == "lr=2"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"goal": "least"}, "goal is 'least', expected one of"),
        ({"metric": "los_end"}, "has no metric 'los_end'. It has 5, among them eval/prose/loss"),
        ({"varied": {"lr=3": {"lr": 3}}}, "varied names 'lr=3', expected one of the runs"),
        ({"keep": ("peft",)}, "has no 'peft' to keep"),
    ],
)
def test_a_mistake_is_one_sentence(fields: Any, sentence: str, runs: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ReportError) as caught:
        compared(runs, tmp_path / "out", **fields)
    assert sentence in str(caught.value)


def test_no_run_is_the_best_if_all_diverged(runs: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="None of the 1 runs has a finite 'loss_end'"):
        compared({"lr=4": runs["lr=4"]}, tmp_path / "out")


def averaged_run(folder: Path, *, weights: float, average: float, result: dict[str, Any]) -> str:
    """The output of a training whose exported model is an average of the weights."""
    folder.mkdir()
    rows = [{"step": 9, "eval/loss": weights, "eval/ema/loss": average, "eval/prose/loss": weights}]
    rows[0]["eval/ema/prose/loss"] = average
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    version = {"config": {"loop.ema_beta": 0.99}}
    (folder / ".executor_info").write_text(json.dumps({"name": folder.name, "result": result, "version": version}))
    return str(folder)


def test_runs_with_an_average_are_compared_by_the_model_that_they_export(tmp_path: Path) -> None:
    now = {"loss_end": 7.233, "loss_end_unaveraged": 7.107}
    before = {"loss_end": 6.9}  # of an earlier release: that of the weights
    runs = {
        "now": averaged_run(tmp_path / "now", weights=7.107, average=7.233, result=now),
        "before": averaged_run(tmp_path / "before", weights=6.9, average=7.4, result=before),
    }
    result = compared(runs, tmp_path / "out", further=("eval/prose/loss", "eval/ema/loss"), keep=())
    assert result["values"] == {
        "now": {"loss_end": 7.233, "eval/prose/loss": 7.233, "eval/ema/loss": 7.233},
        "before": {"loss_end": 7.4, "eval/prose/loss": 7.4, "eval/ema/loss": 7.4},
    }


def test_the_runs_are_drawn_over_their_steps_where_they_have_logged_the_metric(
    runs: dict[str, str], tmp_path: Path
) -> None:
    assert compared(runs, tmp_path / "ends", metric="scores.arc.acc", goal="max")["plots"] == ["plots/comparison.png"]
    for label, path in runs.items():
        rewards = [{"step": step, "rl/reward": LOSSES[label] * step} for step in range(3)]
        Path(path, "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rewards))
        record = json.loads(Path(path, ".executor_info").read_text())
        record["result"]["reward_end"] = LOSSES[label]
        Path(path, ".executor_info").write_text(json.dumps(record))
    result = compared(runs, tmp_path / "rewards", metric="reward_end", goal="max")
    assert result["best"] == "lr=1"
    assert result["plots"] == ["plots/comparison.png", "plots/curves.png"]
    assert (tmp_path / "rewards/plots/curves.png").read_bytes().startswith(b"\x89PNG")
    Path(runs["lr=1"], "metrics.jsonl").write_text('{"step": 1, "rl/rew')
    with pytest.raises(ReportError, match=r"The metrics of the run 'lr=1' at .* are damaged"):
        compared(runs, tmp_path / "damaged", metric="reward_end", goal="max")
