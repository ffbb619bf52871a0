"""Generators of Reasoning Gym are used if their rewards can be believed, and refused with the reason if not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from admission import require_admissible

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.environments import reasoning_gym
from marin_assets.stages.train.rl.environments.reasoning_gym import REFUSED, ReasoningGym, usable_tasks
from marin_assets.stages.train.rl.lessons import lesson_of, open_environment
from marin_assets.step.values import unwrap_versioned_value


def opened(environment: ReasoningGym) -> Any:
    return open_environment("mine", unwrap_versioned_value(lesson_of(environment)))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        *(
            ({"task": task}, f"The generator '{task}' of reasoning-gym is not used: {REFUSED[task]}.")
            for task in REFUSED
        ),
        ({"task": "chainsum"}, "task is 'chainsum', expected one of 84 names. Did you mean 'chain_sum'"),
        ({"settings": {"seed": 3}}, "settings has 'seed', which the training sets"),
        ({"settings": {"size": 3}}, "settings has 'size', which the training sets"),
        ({"settings": {"terms": 3}}, "makes no problem with the settings {'terms': 3} (TypeError"),
        ({"settings": {"min_terms": 0}}, "makes no problem with the settings {'min_terms': 0} (AssertionError"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(TrainError, match=re.escape(says)):
        opened(ReasoningGym(**{"task": "chain_sum", **changes}))


def test_another_version_of_the_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasoning_gym, "version", lambda name: "0.2")
    with pytest.raises(TrainError, match=r"reasoning-gym 0.2 is installed, expected 0.1.25"):
        opened(ReasoningGym(task="chain_sum"))


def test_a_problem_is_made_again_from_its_number_and_its_answer_is_graded() -> None:
    sums = opened(ReasoningGym(task="chain_sum", settings={"max_terms": 2, "max_digits": 1}))
    example = sums.example(0, 2**31 - 1)
    assert sums.prompt(example) == f"{example['question']}\nAnswer:"
    again = opened(ReasoningGym(task="chain_sum", settings={"max_terms": 2, "max_digits": 1}))
    assert again.reward(example, f" {example['answer']}\n") == 1.0
    assert again.reward(example, f"<answer>1</answer> or <answer>{example['answer']}</answer>") == 1.0
    assert again.reward(example, f"It is {example['answer']}, surely.") == 0.0  # the package gives a part of the reward
    assert len({sums.example(seed, index)["question"] for seed in range(3) for index in range(50)}) > 60


@pytest.mark.parametrize("text", ["__import__('os')._exit(3)", "9**9**9**9", "().__class__", "x", "1+" * 500 + "1"])
def test_a_text_that_a_scorer_would_run_is_wrong(text: str) -> None:
    for task in ("countdown", "string_insertion"):
        environment = ReasoningGym(task=task)
        assert environment.reward(environment.example(0, 1), text) == 0.0


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_generator_that_is_not_refused_is_admitted() -> None:
    tasks = usable_tasks()
    assert len(tasks) == 84
    for first in range(0, len(tasks), 20):
        environments = {task: ReasoningGym(task=task) for task in tasks[first : first + 20]}
        require_admissible(environments, dict.fromkeys(environments, lambda environment, example: example["answer"]))
