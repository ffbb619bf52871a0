"""Environments make the same examples everywhere, and grade right and wrong answers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from rl_environments import Faulty

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.environments.calculator import Calculator
from marin_assets.stages.train.rl.environments.digit_sums import DigitSums
from marin_assets.stages.train.rl.environments.repeat_word import RepeatWord
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.lessons import Lesson, lesson_of
from marin_assets.stages.train.rl.sampling.environment_process import EnvironmentFault, EnvironmentProcess
from marin_assets.step.values import unwrap_versioned_value

ALL = [TargetWord(), RepeatWord(), RepeatWord(held_out=True), DigitSums(), Calculator()]


def right_answer(environment: Any, example: dict[str, Any]) -> str:
    if isinstance(environment, TargetWord):
        return " the" * 8
    if isinstance(environment, RepeatWord):
        return f" {example['word']}" * 3
    total = example["a"] + example["b"]
    if isinstance(environment, DigitSums):
        return f" {total}"
    called = f" {example['a']} + {example['b']};"
    return called + str(environment.reply(example, called)) + f" {total}."


@pytest.mark.parametrize("environment", ALL, ids=lambda each: type(each).__name__)
def test_a_right_answer_has_the_full_reward_and_rubbish_none(environment: Any) -> None:
    for index in range(50):
        example = environment.example(7, index)
        assert environment.reward(example, right_answer(environment, example)) == 1.0
        for rubbish in ("", "banana", "0" * 50, ";", "\n"):
            assert environment.reward(example, rubbish) == 0.0


def test_examples_are_the_same_in_every_process() -> None:
    program = (
        "from marin_assets.stages.train.rl.environments.calculator import Calculator\n"
        "from marin_assets.stages.train.rl.environments.repeat_word import RepeatWord\n"
        "print([(Calculator().example(3, i), RepeatWord().example(3, i)) for i in range(20)])"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}, {"PYTHONPATH": ":".join(sys.path)})
    ]
    assert runs[0] == runs[1]
    assert len({str(DigitSums().example(0, index)) for index in range(300)}) > 90


def test_held_out_words_are_never_those_of_the_training() -> None:
    trained, held_out = (
        {str(RepeatWord(held_out=value).example(0, index)["word"]) for index in range(500)} for value in (False, True)
    )
    assert trained.isdisjoint(held_out)
    assert len(trained) > len(held_out) > 3


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("raises", "reward_raised"),
        ("nan", "reward_not_finite"),
        ("none", "reward_no_number"),
        ("hangs", "reward_hung"),
        ("dies", "reward_died"),
    ],
)
def test_a_reward_that_fails_is_a_fault_with_a_reason_and_the_next_call_is_answered(fault: str, reason: str) -> None:
    lessons = unwrap_versioned_value({"faulty": lesson_of(Faulty(fault=fault))})
    with EnvironmentProcess(lessons, timeout_s=1.0) as environments:
        example = environments.example("faulty", 0, 3)
        assert environments.prompt("faulty", example) == "Number 3"
        with pytest.raises(EnvironmentFault) as raised:
            environments.reward("faulty", example, "three!")
        assert raised.value.reason == reason
        assert raised.value.note
        assert environments.reward("faulty", example, "four") == 0.4


@pytest.mark.parametrize(
    ("environment", "arguments", "says"),
    [
        ("no.such.module:Thing", {}, "No module named"),
        ("rl_environments:Thing", {}, "has no 'Thing'"),
        ("rl_environments:Plain", {}, "missing 1 required"),
        ("rl_environments:NoReward", {}, "has no method 'reward'"),
    ],
)
def test_what_is_no_environment_is_refused_in_a_sentence(environment: str, arguments: Any, says: str) -> None:
    lessons = unwrap_versioned_value({"mine": Lesson(environment=environment, arguments=arguments)})
    with pytest.raises(TrainError, match=says) as raised, EnvironmentProcess(lessons, timeout_s=5):
        pass
    assert "'mine'" in str(raised.value)
