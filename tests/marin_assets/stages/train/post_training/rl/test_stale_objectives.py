"""Which correction learns from samples of older weights: truncated weights and masks do, and a clip hardly."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from rl_training import adam, rl_config

from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.lessons import lesson_of
from marin_assets.stages.train.rl.objective import CORRECTIONS, Objective
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.step.values import unwrap_versioned_value


def mean_reward(model: str, output: Path, correction: str, staleness: int) -> float:
    """Mean over 50 updates."""
    config = rl_config(
        model, output, lessons={"the": lesson_of(TargetWord())}, num_train_steps=50, groups=4, group_size=8,
        groups_per_unit=4, max_tokens=16, max_length=32, temperature=1.0, staleness=staleness, optimizer=adam(3e-3),
        objective=unwrap_versioned_value(Objective(correction=correction)),
    )  # fmt: skip
    train_rl(config)
    return statistics.fmean(row["rl/reward"] for row in read_metrics(f"{output}/metrics.jsonl"))


@pytest.fixture
def means(request: pytest.FixtureRequest, base_path: str, tmp_path: Path) -> dict[str, float]:
    """The mean reward by correction, at the staleness of the parameter."""
    return {name: mean_reward(base_path, tmp_path / name, name, request.param) for name in CORRECTIONS}


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("means", [0], indirect=True)
def test_of_its_own_samples_a_model_learns_alike_with_each_correction(means: dict[str, float]) -> None:
    print(means)
    assert max(means.values()) - min(means.values()) < 0.3, "they differ in digits, which decide what is drawn next"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("means", [4, 12], indirect=True)
def test_of_stale_samples_truncated_weights_and_masks_learn_and_a_clip_hardly(means: dict[str, float]) -> None:
    print(means)
    assert min(means["truncate"], means["mask"]) > means["none"] > means["clip"]
    assert means["clip"] < 0.5 * means["truncate"]
