"""Reinforcement learning is a function of its config: samplers, kills and resumption change nothing."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nano_training import weights_of
from rl_environments import Faulty
from rl_training import EOS, adam, results_of, rl_config, run_to, samplers_below

from marin_assets.inference.engine import TORCH, VLLM, EngineError
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.metrics.metrics import MetricsFile, read_metrics
from marin_assets.stages.train.rl.config import ReplayBuffer
from marin_assets.stages.train.rl.curriculum.rules import Curriculum
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.lessons import Lesson, lesson_of
from marin_assets.stages.train.rl.measures.health import REWARD_CHECKS
from marin_assets.stages.train.rl.objective import Objective
from marin_assets.stages.train.rl.orders import schedule
from marin_assets.stages.train.rl.rollout import read_rollouts
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.stages.train.rl.trainer import loop
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.hardware.resources import cpu, tpu
from marin_resources.ray_tpu.shards.job_allocation import JobAllocation, reserve


def test_sampling_and_loss_agree_on_every_token(plain: tuple[Path, dict[str, Any]]) -> None:
    output, result = plain
    assert result["mismatch_max"] < 1e-5
    first, *later = read_metrics(f"{output}/metrics.jsonl")
    assert first["train/ratio_max"] == pytest.approx(1, abs=1e-5)
    assert first["rl/staleness"] == 0
    assert {row["rl/staleness"] for row in later} == {1}
    assert later[-1]["train/mismatch_max"] > 1e-5  # weights have moved since
    assert [row["step"] for row in [first, *later]] == list(range(6))
    assert {row["rl/staleness_max"] for row in later} == {1}
    assert all(0 <= row["rl/pass_at_1"] <= row["rl/pass_at_k"] <= 1 for row in [first, *later])
    assert {"rl/pass_at_k/the", "rl/pass_at_k/turns"} <= {name for row in later for name in row}


def test_every_rollout_is_in_the_table_with_what_it_was_drawn_with(plain: tuple[Path, dict[str, Any]]) -> None:
    output, result = plain
    rollouts = read_rollouts(str(output))
    assert len(rollouts) == len({rollout.id for rollout in rollouts}) == result["rollouts"] == 6 * 4 * 4
    assert result["rollouts_used"] + sum(result["rollouts_unused"].values()) == result["rollouts"]
    assert sum(row["rollouts"] for row in result["by_reason"]) == result["rollouts"]
    assert {sample["step"] for sample in result["samples"]} == {0, 1, 2, 4, 5}
    assert all(check.holds(result) for check in REWARD_CHECKS)
    for rollout in rollouts:
        assert len(rollout.ids) == len(rollout.logprobs) == len(rollout.mask)
        assert 0 < sum(rollout.mask) <= 12
        assert rollout.weights_step == max(0, rollout.step - 1)
        assert all(logprob < 0 for logprob, drawn in zip(rollout.logprobs, rollout.mask, strict=True) if drawn)
    in_turns = [rollout for rollout in rollouts if rollout.lesson == "turns" and " (go on)" in rollout.answer]
    assert in_turns
    assert all(0 in rollout.mask for rollout in in_turns)
    ended = [rollout for rollout in rollouts if rollout.lesson == "the" and rollout.finish == "stop"]
    assert ended
    assert all(rollout.mask[-1] == 1 for rollout in ended)
    assert all(rollout.ids[-1] == EOS or rollout.answer.endswith((",", ".", "\n")) for rollout in ended)
    assert not {"weights", "plans", "units", "ledger"} & set(os.listdir(output))
    for name in ("hf/model.safetensors", *result["plots"], "checkpoints/step-5/metadata.json"):
        assert (output / name).exists()


def test_processes_that_sample_give_the_same_bytes_and_so_they_do_when_they_are_killed(
    model: str, plain: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = []
    add = MetricsFile.add

    def kill_a_sampler(self: MetricsFile, step: int, metrics: Any) -> None:
        add(self, step, metrics)
        if step in (1, 3) and step not in killed:
            killed.append(step)
            os.kill(samplers_below(os.getpid())[0], signal.SIGKILL)

    monkeypatch.setattr(MetricsFile, "add", kill_a_sampler)
    result = train_rl(rl_config(model, tmp_path, samplers=2, weights_by="flight"))
    assert killed == [1, 3]
    assert results_of(tmp_path) == results_of(plain[0])
    assert 0 <= result["samplers_wait_share"] < 1
    assert samplers_below(os.getpid()) == []


@pytest.mark.long
@pytest.mark.parametrize("samplers", [1, 3])
def test_any_number_of_processes_gives_the_same_bytes(
    samplers: int, model: str, plain: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    train_rl(rl_config(model, tmp_path, samplers=samplers))
    assert results_of(tmp_path) == results_of(plain[0])


@pytest.mark.long
@pytest.mark.usefixtures("shared_ray")
def test_processes_on_a_cluster_give_the_same_bytes(
    model: str, plain: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    with reserve(JobAllocation(cpus=1)):
        train_rl(rl_config(model, tmp_path, samplers=2, sampler_resources=cpu(0.5)))
    assert results_of(tmp_path) == results_of(plain[0])


def test_a_training_that_was_killed_is_resumed_to_the_same_bytes(
    model: str, plain: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    config = rl_config(model, tmp_path, steps_per_checkpoint=2)
    assert run_to(config, kill_at=40) is None
    assert (tmp_path / "metrics.jsonl").exists()
    train_rl(config)
    assert results_of(tmp_path) == results_of(plain[0])
    finished = train_rl(config)  # again, as after a kill at its very end
    assert finished["resumed_from_step"] == 5
    assert results_of(tmp_path) == results_of(plain[0])
    assert finished["reward_end"] == plain[1]["reward_end"]


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("samplers", "weights_by"), [(0, "file"), (2, "file"), (2, "flight")])
def test_it_is_killed_at_drawn_moments_and_gives_the_same_bytes(
    samplers: int, weights_by: str, model: str, plain: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    draw, kills, number = random.Random(f"{samplers} {weights_by}"), 0, 0
    settings = {"steps_per_checkpoint": 1, "samplers": samplers, "weights_by": weights_by}
    moments = run_to(rl_config(model, tmp_path / "whole", **settings))
    assert moments
    while kills < 10:
        config = rl_config(model, tmp_path / str(number), **settings)
        while run_to(config, kill_at=draw.randrange(1, moments // 2)) is None:
            kills += 1
        assert results_of(config.output_path) == results_of(plain[0])
        number += 1


@pytest.mark.parametrize(
    "fault", ["raises", *(pytest.param(name, marks=pytest.mark.long) for name in ("hangs", "nan", "dies"))]
)
def test_a_reward_that_fails_costs_its_rollouts_and_is_counted(fault: str, model: str, tmp_path: Path) -> None:
    lessons = {"faulty": lesson_of(Faulty(fault=fault)), "mine": Lesson(environment="rl_environments:Plain",
               arguments={"word": "One"})}  # fmt: skip
    result = train_rl(rl_config(model, tmp_path, lessons=lessons, num_train_steps=2, method_timeout_s=0.5, staleness=0))
    reason = {"raises": "reward_raised", "hangs": "reward_hung", "nan": "reward_not_finite", "dies": "reward_died"}
    unused = result["rollouts_unused"]
    assert unused[reason[fault]] > 0
    assert result["rollouts_used"] + sum(unused.values()) == result["rollouts"] == 32
    marked = [rollout for rollout in read_rollouts(str(tmp_path)) if not rollout.used]
    assert {rollout.reason for rollout in marked} == set(unused)
    assert all(rollout.note for rollout in marked if rollout.reason == reason[fault])


@pytest.mark.parametrize("samplers", [0, pytest.param(2, marks=pytest.mark.long)])
def test_a_shift_by_one_token_is_refused_at_the_first_step(
    samplers: int, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    def shifted(*arguments: Any) -> Any:
        arrays = as_it_is(*arguments)
        return replace(arrays, drawn_logprobs=np.roll(arrays.drawn_logprobs, 1, axis=1))

    as_it_is = loop.arrays_of
    monkeypatch.setattr(loop, "arrays_of", shifted)
    with pytest.raises(TrainError, match="off between sampling and loss"):
        train_rl(rl_config(model, tmp_path, samplers=samplers))
    assert samplers_below(os.getpid()) == []


def test_no_rollout_that_can_be_used_is_a_sentence(model: str, tmp_path: Path) -> None:
    lessons = {"long": lesson_of(Faulty(fault="long"))}
    with pytest.raises(TrainError, match=r"'prompt_too_long': 16.*'the prompt has \d+ tokens"):
        train_rl(rl_config(model, tmp_path, lessons=lessons))


def test_the_model_learns_to_say_a_word_and_a_lesson_that_is_not_trained_is_reported(
    base_path: str, tmp_path: Path
) -> None:
    lessons = {"the": lesson_of(TargetWord(), weight=3.0), "a": lesson_of(TargetWord(word=" a"), is_trained=False)}
    result = train_rl(
        rl_config(
            base_path, tmp_path, lessons=lessons, num_train_steps=25, optimizer=adam(3e-3), max_length=32, staleness=0
        )
    )
    assert result["reward_end"] > 5 * result["reward_start"]
    assert result["rewards_end"]["the"] > 0.3 > result["rewards_end"]["a"]
    assert result["rollouts_unused"]["not_trained"] > 0


LEARNING: dict[str, Any] = {"max_tokens": 16, "max_length": 32, "temperature": 1.0, "num_train_steps": 50,
                            "groups": 8, "group_size": 8, "groups_per_unit": 8, "staleness": 0}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_learns_from_each_seed(seed: int, base_path: str, tmp_path: Path) -> None:
    lessons = {"the": lesson_of(TargetWord())}
    result = train_rl(rl_config(base_path, tmp_path, lessons=lessons, seed=seed, optimizer=adam(3e-3), **LEARNING))
    assert result["reward_start"] < 0.15
    assert result["reward_end"] > 1.9


@pytest.mark.long
def test_nothing_is_learnt_from_rewards_that_are_shuffled(
    base_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shuffled(config: Any, rollouts: Any) -> Any:
        rewards = [rollout.reward for rollout in rollouts]
        random.Random(rollouts[0].step).shuffle(rewards)
        return as_it_is(config, [replace(each, reward=reward) for each, reward in zip(rollouts, rewards, strict=True)])

    as_it_is = schedule.choose_used
    monkeypatch.setattr(schedule, "choose_used", shuffled)
    lessons = {"the": lesson_of(TargetWord())}
    result = train_rl(rl_config(base_path, tmp_path, lessons=lessons, optimizer=adam(3e-3), **LEARNING))
    assert result["reward_end"] < 0.3


@pytest.mark.long
@pytest.mark.parametrize(
    "objective",
    [{"kind": "grpo", "correction": "clip"}, {"kind": "dapo", "correction": "mask"},
     {"kind": "dr_grpo", "correction": "sequence"}, {"kind": "reinforce", "kl": "k3", "kl_weight": 0.1}],
    ids=lambda each: each["kind"],
)  # fmt: skip
def test_every_objective_trains_a_model(objective: dict[str, Any], base_path: str, tmp_path: Path) -> None:
    settings = unwrap_versioned_value(Objective(**objective))
    train_rl(rl_config(base_path, tmp_path, objective=settings, num_train_steps=3))
    rows = read_metrics(f"{tmp_path}/metrics.jsonl")
    assert weights_of(tmp_path) != (Path(base_path) / "model.safetensors").read_bytes()
    assert ("train/kl" in rows[-1]) == ("kl_weight" in objective)
    if "kl_weight" in objective:
        assert rows[0]["train/kl"] == pytest.approx(0, abs=1e-6)
        assert rows[-1]["train/kl"] > 1e-6


FREE: dict[str, Any] = {"order": "free", "samplers": 1}
MISTAKES = {
    "group_size=1": ({"group_size": 1}, "group_size is 1, expected at least 2"),
    "groups": ({"groups": 5}, "groups is 5 and groups_per_unit 2, expected a divisor"),
    "temperature": ({"temperature": 0.0}, "temperature is 0.0, expected a number above 0"),
    "staleness": ({"staleness": -1}, "staleness is -1"),
    "order": ({"order": "fre"}, "order is 'fre', expected one of 'scheduled', 'free'. Did you mean 'free'?"),
    "free alone": ({"order": "free"}, "order is 'free' and samplers 0, expected at least 1"),
    "extra": ({"most_extra_groups": 3}, "most_extra_groups is 3 and groups_per_unit 2, expected a multiple of it"),
    "no extra": ({"most_extra_groups": 0}, "most_extra_groups is 0 and groups_per_unit 2"),
    "extra of reinforce": (
        {"most_extra_groups": 4, "objective": Objective(kind="reinforce")},
        "the objective 'reinforce' compares rewards of the whole batch",
    ),
    "buffer": ({"replay_buffer": ReplayBuffer()}, "replay_buffer is set, and order is 'scheduled'"),
    "uses": ({**FREE, "replay_buffer": ReplayBuffer(most_uses=3)}, "most_uses is 3 and staleness 1, expected"),
    "no use": ({**FREE, "replay_buffer": ReplayBuffer(most_uses=0)}, "most_uses is 0, expected a number of at least 1"),
    "capacity": ({**FREE, "replay_buffer": ReplayBuffer(capacity=0)}, "capacity is 0, expected a number of at least 1"),
    "curriculum": ({**FREE, "curriculum": Curriculum()}, "order is 'free' and a curriculum is set"),
    "max_tokens": ({"max_tokens": 48}, "leaves no room for a prompt"),
    "too long": ({"max_length": 4096}, "the model takes at most 64 tokens"),
    "kind": ({"objective": Objective(kind="gprо")}, "The objective has kind="),
    "correction": ({"objective": Objective(correction="truncated")}, "Did you mean 'truncate'?"),
    "no lesson": ({"lessons": {}}, "lessons is empty"),
    "no colon": ({"lessons": {"a": Lesson(environment="module.Class")}}, "expected 'package.module:Class'"),
    "a slash": ({"lessons": {"a/b": lesson_of(TargetWord())}}, "expected a name without '/'"),
    "weight": ({"lessons": {"a": lesson_of(TargetWord(), weight=0.0)}}, "has a weight above 0"),
    "way of weights": ({"weights_by": "flihgt"}, "weights_by is 'flihgt', expected one of 'file', 'flight'. Did you"),
    "engine in a schedule": ({"samplers": 1, "engine": VLLM}, "The engine is VLLM, and order is 'scheduled'"),
    "engine's name": ({**FREE, "engine": "vllm"}, "The engine is 'vllm', expected None"),
    "another engine": ({**FREE, "engine": TORCH}, "The engine is of the kind 'torch', expected VLLM"),
    "servers": ({**FREE, "engine": replace(VLLM, servers=2)}, "The engine has servers=2 and server_resources=None"),
    "vLLM on a slice": ({**FREE, "engine": VLLM, "sampler_resources": tpu("v4-8")}, "vLLM's servers have CPUs or GPUs"),
    "hosts of a sampler": ({"sampler_resources": tpu("v4-16")}, "expected those of one host"),
    "one step": ({"num_train_steps": 1}, "num_train_steps is 1"),
    "a text": ({"groups": "8"}, "groups is '8', expected a whole number"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_config_is_a_sentence(mistake: str, model: str, tmp_path: Path) -> None:
    changes, says = MISTAKES[mistake]
    with pytest.raises((TrainError, EngineError), match=re.escape(says)):
        train_rl(rl_config(model, tmp_path, **changes))


def test_a_damaged_table_of_rollouts_is_named(model: str, tmp_path: Path) -> None:
    config = rl_config(model, tmp_path)
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts/step-0000000.parquet").write_bytes(b"PAR1" + json.dumps({}).encode())
    with pytest.raises(TrainError, match=r"step-0000000.parquet' are damaged"):
        train_rl(config)
