"""Which correction learns from samples that are four updates old: a truncated weight does, and a clip hardly."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from rl_training import adam, rl_config

from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.lessons import lesson_of
from marin_assets.stages.train.rl.objective import Objective
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.step.values import unwrap_versioned_value


def mean_reward(model: str, output: Path, correction: str) -> float:
    """Mean over 50 updates."""
    config = rl_config(
        model, output, lessons={"the": lesson_of(TargetWord())}, num_train_steps=50, groups=4, group_size=8,
        groups_per_unit=4, max_tokens=16, max_length=32, temperature=1.0, staleness=4, optimizer=adam(3e-3),
        objective=unwrap_versioned_value(Objective(correction=correction)),
    )  # fmt: skip
    train_rl(config)
    return statistics.fmean(row["rl/reward"] for row in read_metrics(f"{output}/metrics.jsonl"))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_of_stale_samples_a_truncated_weight_learns_and_a_clip_hardly(base_path: str, tmp_path: Path) -> None:
    means = {name: mean_reward(base_path, tmp_path / name, name) for name in ("truncate", "none", "clip")}
    assert means["truncate"] > means["none"] > means["clip"]
    assert means["clip"] < 0.5 * means["truncate"]
