"""A model is evaluated on environments: its scores are those of its answers, exactly, however often it is killed."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from random_llama import write_random_llama
from rl_environments import Faulty, Turns

from marin_assets.documents import read_documents
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.evaluation.evaluate_on_rewards import RlEvalConfig, evaluate_on_rewards, units_of
from marin_assets.stages.train.rl.evaluation.scores import rows_of, scores_of
from marin_assets.stages.train.rl.lessons import lesson_of
from marin_assets.stages.train.rl.plan import EXAMPLES
from marin_assets.stages.train.rl.rollout import Rollout, read_rollouts
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import encode

FILES = ("scores.csv", "samples.jsonl", "rollouts/step-0000000.parquet")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model") / "hf"
    folder.mkdir()
    return write_random_llama(folder, list(topics.values())[:50], 64)


def config_of(model: str, output: Path, **changes: Any) -> RlEvalConfig:
    settings: dict[str, Any] = {
        "model_path": model,
        "output_path": str(output),
        "lessons": {"the": lesson_of(TargetWord(word="e")), "turns": lesson_of(Turns())},
        "examples": 6,
        "samples": 4,
        "examples_per_unit": 4,
        "pass_at": (2,),
        "passing_reward": 0.25,
        "max_tokens": 10,
        "max_length": 48,
    }
    config: RlEvalConfig = unwrap_versioned_value(RlEvalConfig(**{**settings, **changes}))
    return config


def written(output: Path) -> list[bytes]:
    return [(output / name).read_bytes() for name in FILES]


@pytest.fixture(scope="module")
def whole(model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("whole")
    return output, evaluate_on_rewards(config_of(model, output))


def test_the_scores_are_those_of_the_answers_and_the_answers_are_documents(whole: tuple[Path, dict[str, Any]]) -> None:
    output, result = whole
    assert (result["lessons"], result["examples"], result["rollouts"], result["rollouts_used"]) == (2, 12, 48, 48)
    rollouts = read_rollouts(str(output))
    for lesson in ("the", "turns"):
        rewards = [rollout.reward for rollout in rollouts if rollout.lesson == lesson]
        scores = result["scores"][lesson]
        assert scores["instances"] == 6
        assert scores["reward"] == pytest.approx(sum(filter(None, rewards)) / 24)
        assert scores["pass@1"] == pytest.approx(sum(reward is not None and reward >= 0.25 for reward in rewards) / 24)
        assert scores["pass@1"] < scores["pass@2"] < scores["pass@4"]
        assert scores["reward_stderr"] > 0
    assert any(" (go on)" in rollout.answer and 0 in rollout.mask for rollout in rollouts)
    documents = list(read_documents(str(output / FILES[2])))
    assert [document.text for document in documents] == [each.prompt + each.answer for each in rollouts]
    table = list(csv.DictReader((output / "scores.csv").open()))
    assert [(row["task"], row["metric"]) for row in table[:4]] == [
        ("the", name) for name in ("reward", "pass@1", "pass@2", "pass@4")
    ]
    samples = [json.loads(line) for line in (output / "samples.jsonl").read_text().splitlines()]
    assert [len(sample["answers"]) for sample in samples] == [4] * 12
    assert not (output / "units").exists()


def test_examples_are_others_than_those_of_any_training(model: str) -> None:
    units = units_of(config_of(model, Path("unused")))
    indices = [group.index for unit in units for group in unit.groups]
    assert len(indices) == 12
    assert min(indices) >= EXAMPLES
    assert len({seed for unit in units for group in unit.groups for seed in group.seeds}) == 48


def test_an_evaluation_that_was_killed_takes_up_what_it_has_and_gives_the_same_bytes(
    whole: tuple[Path, dict[str, Any]], model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from marin_assets.stages.train.rl.sampling.unit import UnitSampler

    sampled: list[int] = []
    sample = UnitSampler.sample

    def die_at_the_third(self: UnitSampler, unit: Any, digest: str) -> list[Rollout]:
        if unit.number == 2 and 2 not in sampled:
            sampled.append(2)
            raise KeyboardInterrupt
        sampled.append(unit.number)
        return sample(self, unit, digest)

    monkeypatch.setattr(UnitSampler, "sample", die_at_the_third)
    config = config_of(model, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        evaluate_on_rewards(config)
    assert evaluate_on_rewards(config) == whole[1]
    assert sampled == [0, 1, 2, 2, 3]
    assert written(tmp_path) == written(whole[0])


def answers(example: int, rewards: list[float | None], **fields: Any) -> list[Rollout]:
    empty: dict[str, Any] = {"step": 0, "weights_step": 0, "weights_digest": "", "prompt": "?", "answer": "!"}
    empty |= {"prompt_ids": [], "ids": [], "logprobs": [], "mask": [], "finish": "stop", "lesson": "sums"}
    empty |= {"example": {"number": example}, "group": example, **fields}
    return [Rollout(id=f"{n}", member=n, reward=reward, **empty) for n, reward in enumerate(rewards)]


def test_pass_at_k_is_the_unbiased_estimate_and_its_error_that_of_a_mean_over_examples() -> None:
    config = config_of("m", Path("o"), examples=4, pass_at=(2,), passing_reward=1.0)
    rollouts = [*answers(0, [1, 1, 0, 0]), *answers(1, [0, 0, 0, 0]), *answers(2, [1, 0, 0, 0.9])]
    scores = scores_of(config, rows_of(config, rollouts))["sums"]
    assert scores["pass@1"] == pytest.approx((0.5 + 0 + 0.25) / 3)
    assert scores["pass@2"] == pytest.approx((5 / 6 + 0 + 0.5) / 3)
    assert scores["pass@4"] == pytest.approx(2 / 3)
    assert scores["reward"] == pytest.approx((0.5 + 0 + 0.475) / 3)
    assert scores["pass@1_stderr"] == pytest.approx((0.125 / 6) ** 0.5)  # of 0.5, 0 and 0.25, by hand


def test_an_example_that_comes_twice_adds_nothing_to_the_certainty() -> None:
    config = config_of("m", Path("o"), examples=4, pass_at=())
    once = [*answers(0, [1, 1, 0, 0]), *answers(1, [0, 0, 0, 0])]
    twice = [*once, *(replace(each, group=each.group + 2) for each in once)]
    [alone, doubled] = [scores_of(config, rows_of(config, rollouts))["sums"] for rollouts in (once, twice)]
    assert doubled["pass@1_stderr"] == pytest.approx(alone["pass@1_stderr"])
    assert all("passage" in row for row in rows_of(config, twice))


def test_an_answer_whose_grading_failed_counts_as_0_and_an_example_without_a_prompt_is_left_out() -> None:
    config = config_of("m", Path("o"), examples=4, pass_at=())
    failed = answers(0, [None, 1, 1, 1])
    failed[0] = replace(failed[0], used=False, reason="reward_raised")
    unasked = answers(1, [None] * 4, used=False, reason="prompt_too_long")
    [row] = rows_of(config, [*failed, *unasked])
    assert row["pass@1"] == 0.75


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "greedy": ({"temperature": 0.0}, "samples is 4 at the temperature 0"),
    "pass_at": ({"pass_at": (5,)}, "pass_at has 5, expected numbers from 1 to samples=4"),
    "samples": ({"samples": 0, "pass_at": ()}, "samples is 0"),
    "lessons": ({"lessons": {}}, "lessons is empty"),
    "model": ({"model_path": "/nowhere"}, "has no 'config.json'"),
    "length": ({"max_length": 4096}, "the model takes at most 64 tokens"),
    "room": ({"max_tokens": 48}, "leaves no room for a prompt"),
    "seed": ({"seed": -1}, "seed is -1"),
    "environment": ({"lessons": {"long": lesson_of(Faulty(fault="long"))}}, "'long' has a prompt: prompt_too_long"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_config_is_a_sentence(mistake: str, model: str, tmp_path: Path) -> None:
    changes, says = MISTAKES[mistake]
    with pytest.raises(TrainError, match=re.escape(says)):
        evaluate_on_rewards(config_of(model, tmp_path, **changes))


@pytest.mark.long
def test_greedy_answers_are_drawn_once(model: str, tmp_path: Path) -> None:
    result = evaluate_on_rewards(config_of(model, tmp_path, temperature=0.0, samples=1, pass_at=(), examples=2))
    assert set(result["scores"]["the"]) >= {"reward", "pass@1"}
    assert all(len(each.ids) == len(each.logprobs) == len(each.mask) for each in read_rollouts(str(tmp_path)))


SCRIPT = """
import json, sys
from marin_assets.stages.train.rl.evaluation.evaluate_on_rewards import evaluate_on_rewards
from marin_resources.wire.config_json import decode
evaluate_on_rewards(decode(json.loads(sys.argv[1])))
"""


@pytest.mark.long
def test_another_process_gives_the_same_bytes(whole: tuple[Path, dict[str, Any]], model: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, json.dumps(encode(config_of(model, tmp_path)))]
    for attempt in ("a first", "as after a kill at its very end"):
        subprocess.run(command, check=True, env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"})
        assert written(tmp_path) == written(whole[0]), attempt
