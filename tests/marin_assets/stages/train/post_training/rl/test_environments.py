"""Environments make the same examples everywhere, and grade right and wrong answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from admission import require_admissible
from rl_environments import Faulty
from rl_training import rl_config, write_ending_llama

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.environments.calculator import Calculator
from marin_assets.stages.train.rl.environments.code_tests import CodeTests
from marin_assets.stages.train.rl.environments.digit_sums import DigitSums
from marin_assets.stages.train.rl.environments.function_environment import FunctionEnvironment
from marin_assets.stages.train.rl.environments.math_answers import MathAnswers
from marin_assets.stages.train.rl.environments.reasoning_gym import ReasoningGym
from marin_assets.stages.train.rl.environments.repeat_word import RepeatWord
from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.lessons import Lesson, lesson_of
from marin_assets.stages.train.rl.rollout import read_rollouts
from marin_assets.stages.train.rl.sampling.environment_process import EnvironmentFault, EnvironmentProcess
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.step.values import unwrap_versioned_value

ROWS = [{"problem": "3 + 4?", "answer": "7"}, {"problem": "Half of 1?", "answer": "\\frac{1}{2}"}]
PROGRAMS = [
    {"problem": "add(a, b)", "tests": ["assert add(2, 3) == 5"], "solution": "def add(a, b): return a + b"},
    {"problem": "print the sum", "tests": [{"input": "2 3", "output": "5\n"}],
     "solution": "print(sum(map(int, input().split())))"},
]  # fmt: skip
SPELLED = FunctionEnvironment(
    examples=[{"word": "tea"}, {"word": "cup"}],
    prompt_format="Spell {word}:",
    reward_function="rl_environments:spelling",
)


def added(environment: Any, example: dict[str, Any]) -> str:
    return f" {example['a'] + example['b']}"


def called_and_added(environment: Any, example: dict[str, Any]) -> str:
    called = f" {example['a']} + {example['b']};"
    return called + str(environment.reply(example, called)) + f"{added(environment, example)}."


@pytest.mark.usefixtures("sandbox")
def test_right_answers_have_the_full_reward_rubbish_has_none_and_every_process_makes_the_same_examples() -> None:
    require_admissible(
        {
            "word": TargetWord(),
            "repeat": RepeatWord(),
            "new_words": RepeatWord(held_out=True),
            "sums": DigitSums(),
            "calculator": Calculator(),
            "mathematics": MathAnswers(problems=ROWS),
            "programs": CodeTests(problems=PROGRAMS),
            "spelling": SPELLED,
        },
        {
            "word": lambda environment, example: " the" * 8,
            "repeat": lambda environment, example: f" {example['word']}" * 3,
            "new_words": lambda environment, example: f" {example['word']}" * 3,
            "sums": added,
            "calculator": called_and_added,
            "mathematics": lambda environment, example: f"So it is \\boxed{{{example['answer']}}}.",
            "programs": lambda environment, example: next(
                f"```python\n{row['solution']}\n```" for row in PROGRAMS if row["problem"] == example["problem"]
            ),
            "spelling": lambda environment, example: "-".join(example["word"]),
        },
        indices=(0, 2**31 - 1),
    )
    assert len({str(DigitSums().example(0, index)) for index in range(300)}) > 90


@pytest.mark.long
@pytest.mark.usefixtures("sandbox")
def test_a_model_is_trained_on_each_kind_of_problems(tmp_path: Path) -> None:
    model = write_ending_llama(tmp_path)
    environments = {
        "mathematics": MathAnswers(problems=ROWS, instruction=""),
        "programs": CodeTests(problems=PROGRAMS, instruction=""),
        "spelling": SPELLED,
        "gym": ReasoningGym(task="leg_counting", settings={"max_animals": 3}, instruction=""),
    }
    lessons = unwrap_versioned_value({name: lesson_of(environment) for name, environment in environments.items()})
    config = rl_config(model, tmp_path / "out", lessons=lessons, num_train_steps=3, groups=8, max_length=64)
    result = train_rl(config)
    reasons = set(result["rollouts_unused"])
    assert reasons <= {"prompt_too_long"}, read_rollouts(config.output_path)[0].note
    assert {rollout.lesson for rollout in read_rollouts(config.output_path)} == set(lessons)


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
