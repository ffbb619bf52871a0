from __future__ import annotations

from typing import Any

import pytest

from marin_assets.stages.train.metrics.health import TRAINING_CHECKS, count_spikes, health_of

FINE = {"throughput/loading_time": 0.01, "throughput/duration": 1.0}


def failing(rows: list[dict[str, Any]]) -> list[str]:
    found = health_of(rows)
    assert list(found) == [check.metric for check in TRAINING_CHECKS]
    return [check.metric for check in TRAINING_CHECKS if not check.holds(found)]


def falling(count: int = 200) -> list[dict[str, Any]]:
    return [{"step": i, "train/loss": 8 - i / 40 + 0.01 * (i % 3), **FINE} for i in range(count)]


def test_a_training_whose_loss_falls_is_well() -> None:
    assert failing(falling()) == []


def test_a_training_without_rows_is_well() -> None:
    assert failing([]) == []


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"not_finite/train/loss": 1.0}, "nonfinite_losses"),
        ({"train/loss": 40.0}, "loss_spikes"),
        ({"train/loss": 0.0}, "steps_without_loss"),
    ],
)
def test_one_bad_step_is_found(change: dict[str, float], check: str) -> None:
    rows = falling()
    rows[150].update(change)
    assert failing(rows) == [check]


def test_a_training_that_waits_for_data_is_starved() -> None:
    assert failing([{**row, "throughput/loading_time": 0.3} for row in falling()]) == ["loading_share"]


def test_a_slow_first_batch_starves_nobody() -> None:
    rows = falling()
    rows[0]["throughput/loading_time"] = 1000.0
    assert failing(rows) == []


def test_one_validation_set_that_rises_among_others_is_found() -> None:
    rows = falling()
    for row, (code, law) in zip(rows[::50], [(5.0, 4.0), (4.0, 3.0), (3.5, 3.2), (3.2, 3.4)], strict=True):
        row.update({"eval/code/loss": code, "eval/law/loss": law, "eval/loss": (code + law) / 2})
    assert failing(rows) == ["validation_rise"]
    assert health_of(rows)["validation_rise"] == pytest.approx(3.4 / 3.0 - 1, abs=1e-4)


def test_a_spike_is_judged_by_the_losses_before_it_alone() -> None:
    noise = [3 + 0.1 * (-1) ** i for i in range(60)]
    assert count_spikes([*noise, 3.6]) == 0
    assert count_spikes([*noise, 3.8]) == 1
    assert count_spikes([3.8, *noise]) == 0
    assert count_spikes([*[100.0] * 60, *[3.0] * 1100, 3.1]) == 1  # the high losses are out of the window


def test_the_rise_is_that_of_the_model_that_is_exported() -> None:
    rows = falling()
    for row, (weights, average) in zip(rows[::50], [(5.0, 6.0), (4.0, 5.0), (3.5, 4.0), (4.2, 3.9)], strict=True):
        row.update({"eval/loss": weights, "eval/ema/loss": average, "eval/law/loss": weights, "eval/ema/law/loss": 5.0})
    assert health_of(rows)["validation_rise"] == pytest.approx(0.2)
    assert health_of(rows, validation="eval/ema/")["validation_rise"] == 0.0
