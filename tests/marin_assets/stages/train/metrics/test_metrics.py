from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from marin_assets.stages.train.metrics.loss_plot import plot_losses
from marin_assets.stages.train.metrics.metrics import MetricsFile, Progress, numbers_to_keep, read_metrics


def write(path: Path, steps: range) -> None:
    metrics = MetricsFile(str(path))
    for step in steps:
        metrics.add(step, {"train/loss": 10.0 - step})
    metrics.close()


def test_a_step_has_one_row_and_it_is_on_disk_at_once(tmp_path: Path) -> None:
    metrics = MetricsFile(str(tmp_path / "metrics.jsonl"))
    metrics.add(2, {"train/loss": 8.0})
    metrics.add(2, {"eval/loss": 8.5})
    metrics.add(3, {"train/loss": 7.0})
    metrics.add(3, {"eval/loss": 7.5})
    expected = [{"step": 2, "train/loss": 8.0, "eval/loss": 8.5}, {"step": 3, "train/loss": 7.0, "eval/loss": 7.5}]
    assert read_metrics(metrics.path) == expected
    metrics.close()


def test_a_metric_keeps_its_first_value_of_a_step(tmp_path: Path) -> None:
    metrics = MetricsFile(str(tmp_path / "metrics.jsonl"))
    metrics.add(2, {"train/loss": 8.0})
    metrics.add(2, {"train/loss": 0.0})
    metrics.close()
    assert read_metrics(metrics.path) == [{"step": 2, "train/loss": 8.0}]


def test_a_resumed_run_drops_the_rows_after_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, range(-1, 50))
    metrics = MetricsFile(str(path), keep_up_to=20)
    metrics.add(21, {"train/loss": 1.0})
    metrics.add(21, {"eval/loss": 2.0})
    metrics.close()
    rows = read_metrics(str(path))
    assert [row["step"] for row in rows] == list(range(-1, 22))
    assert rows[-1] == {"step": 21, "train/loss": 1.0, "eval/loss": 2.0}


def test_the_row_of_the_checkpoint_itself_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, range(5))
    metrics = MetricsFile(str(path), keep_up_to=4)
    metrics.add(4, {"train/loss": 0.0, "eval/loss": 3.0})
    metrics.close()
    assert read_metrics(str(path))[-1] == {"step": 4, "train/loss": 6.0, "eval/loss": 3.0}


def test_a_run_from_the_start_keeps_no_row(tmp_path: Path) -> None:
    write(tmp_path / "metrics.jsonl", range(5))
    MetricsFile(str(tmp_path / "metrics.jsonl")).close()
    assert (tmp_path / "metrics.jsonl").read_bytes() == b""


def test_a_line_truncated_by_a_kill_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, range(3))
    path.write_bytes(path.read_bytes()[:-7])
    assert [row["step"] for row in read_metrics(str(path))] == [0, 1]


def test_in_a_bucket_the_rows_are_there_when_they_are_saved_and_at_the_end(gcs_prefix: str) -> None:
    path = f"{gcs_prefix}/run/metrics.jsonl"
    metrics = MetricsFile(path)
    for step in range(3):
        metrics.add(step, {"train/loss": 1.0})
    assert read_metrics(path) == []
    metrics.save()
    metrics.add(3, {"train/loss": 1.0})
    assert [row["step"] for row in read_metrics(path)] == [0, 1, 2]
    metrics.close()
    assert [row["step"] for row in read_metrics(path)] == [0, 1, 2, 3]


def test_numbers_of_known_kinds_are_kept_and_one_that_json_cannot_hold_leaves_its_name() -> None:
    logged = {
        "train/loss": 1,
        "eval/loss": float("nan"),
        "eval/name": "x",
        "global_step": 3,
        "throughput/mean": 1.0,
    }
    assert json.dumps(numbers_to_keep(logged)) == '{"train/loss": 1.0, "not_finite/eval/loss": 1.0}'


def test_the_last_step_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    progress = Progress(steps=4, tokens_per_step=100)
    for step in (2, 3, 3):
        progress.advance(step, 5.0)
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("step 4 of 4, loss 5.000, ")


def test_the_plot_is_a_picture(tmp_path: Path) -> None:
    rows = [
        {"step": -1, "eval/loss": 6.0},
        {"step": 2, "train/loss": 5.5},
        {"step": 3, "train/loss": 5, "eval/loss": 5},
    ]
    plot_losses(rows, str(tmp_path / "plots/loss.png"))
    assert (tmp_path / "plots/loss.png").read_bytes().startswith(b"\x89PNG")
