"""Measures of rollouts for people, signs of a collapse, and the rollouts that are chosen to be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_reward_trainings import rollouts_of, tokenizer_file
from tokenizers import Tokenizer

from marin_assets.stages.train.rl.measures.health import REWARD_CHECKS, health_of, signs_of
from marin_assets.stages.train.rl.measures.passes import measures_of
from marin_assets.stages.train.rl.measures.selection import choose_to_read, read_small, steps_to_read, tables_in
from marin_assets.stages.train.rl.measures.tables import tables_of
from marin_assets.stages.train.rl.rollout import Rollout, write_step

ROLLOUT = rollouts_of(4, Tokenizer.from_buffer(tokenizer_file()))[0]


def rollout(group: int, reward: float | None, *, lesson: str = "sums", used: bool = True, age: int = 0) -> Rollout:
    id = f"0000004-{group:04}-0000"
    return replace(
        ROLLOUT, id=id, group=group, reward=reward, lesson=lesson, used=used, weights_step=ROLLOUT.step - age
    )


def test_pass_at_1_counts_answers_and_pass_at_k_groups_with_a_reward_above_0() -> None:
    rollouts = [
        *(rollout(0, reward) for reward in (0.0, 0.5, 0.0, 1.0)),
        *(rollout(1, reward, age=3) for reward in (0.0, -1.0, 0.0)),
        rollout(1, None, used=False, age=9),
        *(rollout(2, reward, lesson="held_out", used=False, age=7) for reward in (1.0, 2.0)),
    ]
    assert measures_of(4, rollouts) == {
        "rl/pass_at_1": 2 / 7,
        "rl/pass_at_k": 1 / 2,
        "rl/pass_at_1/held_out": 1.0,
        "rl/pass_at_k/held_out": 1.0,
        "rl/pass_at_1/sums": 2 / 7,
        "rl/pass_at_k/sums": 1 / 2,
        "rl/staleness_max": 3.0,
    }
    assert measures_of(4, [rollout(0, None, used=False)]) == {}


def rows(rewards: list[float], **metrics: float) -> list[dict[str, Any]]:
    return [{"step": step, "rl/reward": reward, **metrics} for step, reward in enumerate(rewards)]


HEALTHY = {"train/entropy": 1.0, "train/k3_of_sampler": 0.01}


@pytest.mark.parametrize(
    ("rewards", "metrics", "failing"),
    [
        ([step / 20 for step in range(20)], HEALTHY, []),
        ([1.0] * 10 + [0.45] * 10, HEALTHY, ["reward_fall"]),
        ([1.0] * 10 + [0.55] * 10, HEALTHY, []),
        ([-1.0] * 10 + [-5.0] * 10, HEALTHY, []),
        ([0.0] * 20, HEALTHY, []),
        ([1.0] * 20, {**HEALTHY, "train/entropy": 0.04}, ["entropy_end"]),
        ([1.0] * 20, {**HEALTHY, "train/k3_of_sampler": 0.2}, ["k3_end"]),
    ],
)
def test_a_collapse_fails_its_check_and_is_a_sentence(
    rewards: list[float], metrics: dict[str, float], failing: list[str]
) -> None:
    numbers = health_of(rows(rewards, **metrics))
    assert [check.name for check in REWARD_CHECKS if not check.holds(numbers)] == failing
    assert len(signs_of(rows(rewards, **metrics))) == len(failing)


def test_one_bad_batch_is_no_collapse() -> None:
    assert signs_of(rows([*([1.0] * 19), 0.0], **HEALTHY)) == []
    assert signs_of(rows([1.0] * 4 + [0.0] * 5)) == [], "too few steps"
    assert health_of([]) == {}


def test_five_steps_are_read_and_of_each_the_best_and_the_worst_of_a_group() -> None:
    assert steps_to_read(range(101)) == [0, 25, 50, 75, 100]
    assert steps_to_read([3, 4]) == [3, 4]
    assert steps_to_read([]) == []
    small = [vars(rollout(0, reward)) for reward in (0.5, 0.0, 1.0)] + [vars(rollout(1, 9.0))]
    assert choose_to_read(small) == [2, 1], "of the first group alone"
    assert choose_to_read([vars(rollout(0, None, used=False))]) == [0]


def test_the_tables_add_up(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_buffer(tokenizer_file())
    for step in range(3):
        write_step(str(tmp_path), step, rollouts_of(step, tokenizer))
    tables = tables_of(str(tmp_path), rows([1.0, 2.0], **{"rl/pass_at_k/sums": 0.25}))
    made = sum(len(read_small(path)) for path in tables_in(str(tmp_path)))
    assert sum(row["rollouts"] for row in tables["by_reason"]) == made == 3 * 3 * 4
    assert sum(lesson["rollouts"] for lesson in tables["by_lesson"].values()) == made
    assert tables["by_lesson"]["sums"] == {
        "reward_end": None,
        "pass_at_1_end": None,
        "pass_at_k_end": 0.25,
        "rollouts": 12,
        "used": 11,
    }
    assert {sample["step"] for sample in tables["samples"]} == {0, 1, 2}
    assert tables["samples"][0]["answer"] == " seven (go on) eight of them"


def test_a_step_that_trained_on_rollouts_of_earlier_ones_alone_has_an_empty_table(tmp_path: Path) -> None:
    write_step(str(tmp_path), 0, [rollout(0, 1.0)])
    write_step(str(tmp_path), 1, [])
    assert [len(read_small(path)) for path in tables_in(str(tmp_path))] == [1, 0]
