"""Which correction learns from stale samples: a truncated weight does, and a clip hardly."""

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

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def rewards(base_path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], float]:
    """Mean reward over 50 updates, by staleness and correction."""
    means = {}
    for staleness in (0, 4, 12):
        for correction in CORRECTIONS:
            output = tmp_path_factory.mktemp(f"{correction}{staleness}")
            means[staleness, correction] = mean_reward(base_path, output, staleness, correction)
            print(staleness, correction, means[staleness, correction])
    return means


def mean_reward(model: str, output: Path, staleness: int, correction: str) -> float:
    config = rl_config(
        model, output, lessons={"the": lesson_of(TargetWord())}, num_train_steps=50, groups=4, group_size=8,
        groups_per_unit=4, max_tokens=16, max_length=32, temperature=1.0, staleness=staleness, optimizer=adam(3e-3),
        objective=unwrap_versioned_value(Objective(correction=correction)),
    )  # fmt: skip
    train_rl(config)
    return statistics.fmean(row["rl/reward"] for row in read_metrics(f"{output}/metrics.jsonl"))


def test_on_policy_all_corrections_are_alike(rewards: dict[tuple[int, str], float]) -> None:
    of_all = [rewards[0, correction] for correction in CORRECTIONS]
    assert max(of_all) - min(of_all) < 0.05 * max(of_all)


@pytest.mark.parametrize("staleness", [4, 12])
def test_of_stale_samples_a_truncated_weight_learns_most_and_a_clip_least(
    staleness: int, rewards: dict[tuple[int, str], float]
) -> None:
    of = {correction: rewards[staleness, correction] for correction in CORRECTIONS}
    assert of["truncate"] >= 0.95 * max(of.values())
    assert max(of["clip"], of["sequence"]) < min(of["truncate"], of["mask"], of["none"])
