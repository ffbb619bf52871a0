"""Groups whose rewards are all equal are left out, and others are sampled in their place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rl_environments import Flat
from rl_training import results_of, rl_config, run_to

from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.rl.batch import choose_used
from marin_assets.stages.train.rl.lessons import lesson_of
from marin_assets.stages.train.rl.rollout import Rollout, read_rollouts
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.step.values import unwrap_versioned_value

GROUPS, EXTRA, SIZE = 4, 8, 4


def settings(share: float) -> dict[str, Any]:
    lessons = unwrap_versioned_value({"flat": lesson_of(Flat(share=share))})
    return {"lessons": lessons, "most_extra_groups": EXTRA, "num_train_steps": 3}


def rollout(group: int, member: int, reward: float | None) -> Rollout:
    return Rollout(
        id=f"0000000-{group:04}-{member:04}", step=0, group=group, member=member, lesson="the", weights_step=0,
        weights_digest="", example={}, prompt="", answer="", prompt_ids=[1], ids=[2], logprobs=[-1.0], mask=[1],
        finish="stop", reward=reward, used=reward is not None, reason="" if reward is not None else "reward_raised",
    )  # fmt: skip


def test_equal_groups_have_no_place_and_those_after_a_full_batch_neither() -> None:
    rewards = [(1.0, 1.0), (0.0, 1.0), (None, 1.0), (2.0, 1.0), (0.0, 0.0), (1.0, 0.0), (3.0, 0.0), (4.0, 0.0)]
    rollouts = [rollout(group, member, each) for group, two in enumerate(rewards) for member, each in enumerate(two)]
    marked = choose_used(rl_config("model", Path("output"), most_extra_groups=4), rollouts)
    reasons = {each.group: each.reason for each in marked}
    assert reasons == {0: "equal_rewards", 1: "", 2: "alone_in_its_group", 3: "", 4: "equal_rewards", 5: "", 6: "",
                       7: "batch_was_full"}  # fmt: skip
    kept = choose_used(rl_config("model", Path("output")), rollouts)
    assert {each.group for each in kept if each.used} == {0, 1, 3, 4, 5, 6, 7}


def test_a_batch_is_full_of_groups_that_differ(model: str, tmp_path: Path) -> None:
    config = rl_config(model, tmp_path / "here", **settings(0.5))
    result = train_rl(config)
    rollouts = read_rollouts(config.output_path)
    used = Counter(each.step for each in rollouts if each.used)
    assert used == dict.fromkeys(range(3), GROUPS * SIZE)
    assert result["rollouts_unused"]["equal_rewards"] > 0
    assert result["rollouts"] <= 3 * (GROUPS + EXTRA) * SIZE
    rows = read_metrics(f"{config.output_path}/metrics.jsonl")
    assert {row["rl/batch_share"] for row in rows} == {1}
    assert sum(row["rl/groups_without_variance"] for row in rows) * SIZE == result["rollouts_unused"]["equal_rewards"]


@pytest.mark.long
def test_extra_groups_are_the_same_with_other_processes_and_after_a_kill(model: str, tmp_path: Path) -> None:
    configs = [rl_config(model, tmp_path / name, **settings(0.5)) for name in ("here", "apart", "killed")]
    train_rl(configs[0])
    train_rl(replace(configs[1], samplers=2))
    killed = replace(configs[2], steps_per_checkpoint=1)
    assert [run_to(killed, kill_at=moment) for moment in (25, 45)] == [None, None]
    assert run_to(killed)
    assert results_of(tmp_path / "here") == results_of(tmp_path / "apart") == results_of(tmp_path / "killed")


@pytest.mark.long
@pytest.mark.parametrize("order", [{}, {"order": "free", "samplers": 1}], ids=["scheduled", "free"])
def test_extra_groups_are_bounded_where_all_rewards_are_equal(
    order: dict[str, Any], model: str, tmp_path: Path
) -> None:
    result = train_rl(rl_config(model, tmp_path, **settings(1.0), **order))
    assert result["rollouts_used"] == 0
    assert 3 * (GROUPS + EXTRA) * SIZE <= result["rollouts_unused"]["equal_rewards"] <= result["rollouts"]
    assert order or result["rollouts"] == 3 * (GROUPS + EXTRA) * SIZE
    assert result["reward_end"] is None
