"""Rewards teach: a nano model that is sometimes right becomes right more often, whatever the seed.

A model of 131,392 parameters is pretrained on Python's help, has seen some right answers (SFT), and is then trained on
rewards for a minute of a core.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from solved_examples import solved, turns_of
from sum_chats import Chat, chat_of, write_lines

from marin_assets.documents import Document, write_documents
from marin_assets.documents.caches.tokens import read_tokenizer
from marin_assets.stages.tokenize.chat.templates import TEMPLATES
from marin_assets.stages.tokenize.chat.tokenize_chats import TokenizeChatsConfig, tokenize_chats
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.environments.calculator import Calculator
from marin_assets.stages.train.rl.environments.digit_sums import DigitSums
from marin_assets.stages.train.rl.environments.repeat_word import WORDS, RepeatWord
from marin_assets.stages.train.rl.evaluation.evaluate_on_rewards import RlEvalConfig, evaluate_on_rewards
from marin_assets.stages.train.rl.lessons import lesson_of
from marin_assets.stages.train.rl.rollout import read_rollouts
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.stages.train.specs.optimizer import NamedOptimizerSpec
from marin_assets.stages.train.train_lm import (
    ChatSpec,
    FromHuggingFace,
    LlamaSpec,
    OptimizerSpec,
    TrainLmConfig,
    train_lm,
)
from marin_assets.step.values import unwrap_versioned_value

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000), pytest.mark.filterwarnings("default")]

WINDOW = 64
CHATS = 3000
SFT_STEPS, MORE_SFT_STEPS, MOST_ROUNDS = 110, 40, 6
OPTIMIZER = NamedOptimizerSpec(learning_rate=1e-3, warmup=0.1, lr_schedule="constant", weight_decay=0.0)
"""Without a warmup the first updates, which are as large as any of Adam's, undo what the model has seen."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is shown before, what is trained on, and what is measured."""

    trained: Any
    measured: Any
    metric: str
    begins: float
    """The least of the metric with which the training on rewards begins: right answers are shown until then."""
    rise: float
    """By how much it rises at least."""
    steps: int
    groups: int
    max_tokens: int
    max_length: int


TASKS = {
    "words": Task(
        trained=RepeatWord(),
        measured=RepeatWord(held_out=True),
        metric="reward",
        begins=0.1,
        rise=0.05,
        steps=100,
        groups=32,
        max_tokens=8,
        max_length=16,
    ),
    "sums": Task(
        trained=DigitSums(),
        measured=DigitSums(),
        metric="pass@1",
        begins=0.2,
        rise=0.15,
        steps=100,
        groups=48,
        max_tokens=3,
        max_length=12,
    ),
    "calculator": Task(
        trained=Calculator(),
        measured=Calculator(),
        metric="pass@1",
        begins=0.02,
        rise=0.15,
        steps=80,
        groups=32,
        max_tokens=10,
        max_length=28,
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has a tokenizer to which the words and numbers of the tasks are single tokens, and a model of some text."""
    folder = tmp_path_factory.mktemp("learning")
    text = [Document(id=name, text=text) for name, text in sorted(topics.items())]
    environments = (DigitSums(), Calculator(), RepeatWord(), RepeatWord(held_out=True))
    of_tasks = (chat for environment in environments for chat in solved(environment, 300))
    tasks = "\n".join("".join(turn["content"] for turn in chat) for chat in of_tasks)
    write_documents(str(folder / "text/a.jsonl.zst"), text)
    write_documents(str(folder / "all/a.jsonl.zst"), [*text, *(Document(id=f"{n}", text=tasks) for n in range(8))])
    run(
        train_tokenizer,
        TrainTokenizerConfig,
        documents_path=f"{folder}/all",
        output_path=f"{folder}/tokenizer",
        vocab_size=512,
        validation_fraction=0.01,
    )
    run(
        tokenize,
        TokenizeConfig,
        documents_path=f"{folder}/text",
        tokenizer_path=f"{folder}/tokenizer",
        output_path=f"{folder}/tokens",
        validation_fraction=0.2,
    )
    train(folder, "base", 50, 7e-3, components={"text": f"{folder}/tokens"})
    return folder


def run(stage: Any, config: Any, **fields: Any) -> Any:
    return stage(unwrap_versioned_value(config(**fields)))


def train(folder: Path, name: str, steps: int, learning_rate: float, **fields: Any) -> None:
    run(
        train_lm,
        TrainLmConfig,
        tokenizer_path=f"{folder}/tokenizer",
        output_path=f"{folder}/{name}",
        model=LlamaSpec(max_seq_len=WINDOW),
        num_train_steps=steps,
        max_eval_batches=4,
        steps_per_eval=steps,
        optimizer=OptimizerSpec(learning_rate=learning_rate, warmup=0.05),
        compilation_cache_dir=f"{folder}/jax",
        **fields,
    )


def shown(task: Task, tokenizer: str) -> Iterable[Chat]:
    """Right answers; of words that are repeated, others than those of the task."""
    if not isinstance(task.trained, RepeatWord):
        return solved(task.trained, CHATS)
    encode = read_tokenizer(tokenizer).encode
    words = sorted({word for text in topics.values() for word in re.findall(r"\b[a-z]{3,9}\b", text)} - set(WORDS))
    short = [word for word in words if len(encode(f" {word}", add_special_tokens=False).ids) <= 2]
    draw = random.Random(0)
    return (chat_of(*turns_of(task.trained, {"word": draw.choice(short)})) for _ in range(CHATS))


@pytest.fixture(scope="module")
def tuned(folder: Path) -> Any:
    """By the name of a task: the model that has seen right answers, and its scores."""

    @cache
    def tune(name: str) -> tuple[str, dict[str, float]]:
        chats = enumerate(shown(TASKS[name], f"{folder}/tokenizer"))
        write_lines(folder / name / "chats/a.jsonl", ({"id": str(n), "messages": chat} for n, chat in chats))
        tokens = f"{folder}/{name}/tokens"
        run(
            tokenize_chats,
            TokenizeChatsConfig,
            chats_path=f"{folder}/{name}/chats",
            output_path=tokens,
            tokenizer_path=f"{folder}/tokenizer",
            chat_template=TEMPLATES["bare"],
            max_seq_len=WINDOW,
            validation_fraction=0.05,
        )
        model = f"{folder}/base/hf"
        for number in range(MOST_ROUNDS):
            sft = f"{name}/sft-{number}"
            start = FromHuggingFace(path=model)
            steps = MORE_SFT_STEPS if number else SFT_STEPS
            train(folder, sft, steps, 5e-3, components={"chats": tokens}, start=start, chat=ChatSpec())
            model = f"{folder}/{sft}/hf"
            before = scores_of(TASKS[name], model, folder / name / f"before-{number}")
            if before[TASKS[name].metric] >= TASKS[name].begins:
                return model, before
        raise AssertionError(f"{name} is {before[TASKS[name].metric]} after the SFT")

    return tune


def scores_of(task: Task, model: str, output: Path) -> dict[str, float]:
    settings = {"examples": 100, "samples": 8, "examples_per_unit": 50}
    result = run(
        evaluate_on_rewards,
        RlEvalConfig,
        model_path=model,
        lessons={"it": lesson_of(task.measured)},
        output_path=str(output),
        max_tokens=task.max_tokens,
        max_length=task.max_length,
        **settings,
    )
    scores: dict[str, float] = result["scores"]["it"]
    return scores


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", TASKS)
def test_right_answers_become_more(name: str, seed: int, tuned: Any, folder: Path, tmp_path: Path) -> None:
    task = TASKS[name]
    start, before = tuned(name)
    run(
        train_rl,
        TrainRlConfig,
        start=FromHuggingFace(path=start),
        tokenizer_path=start,
        output_path=str(tmp_path),
        lessons={"it": lesson_of(task.trained)},
        seed=seed,
        num_train_steps=task.steps,
        groups=task.groups,
        groups_per_unit=task.groups,
        max_tokens=task.max_tokens,
        max_length=task.max_length,
        optimizer=OPTIMIZER,
        compilation_cache_dir=f"{folder}/jax",
    )
    after = scores_of(task, f"{tmp_path}/hf", tmp_path / "after")
    print(name, seed, {metric: (before[metric], after[metric]) for metric in ("reward", "pass@1", "pass@8")})
    assert after[task.metric] > before[task.metric] + task.rise
    if not isinstance(task.trained, RepeatWord):  # eight words are few for an error by word, and three seeds agree
        error = math.hypot(*(scores[f"{task.metric}_stderr"] for scores in (before, after)))
        assert after[task.metric] - before[task.metric] > 1.96 * error
    if isinstance(task.trained, RepeatWord):
        drawn = {rollout.example["word"] for rollout in read_rollouts(str(tmp_path))}
        assert drawn.isdisjoint({task.measured.example(0, number)["word"] for number in range(100)})
    if isinstance(task.trained, Calculator):
        called = [rollout for rollout in read_rollouts(str(tmp_path)) if ". So it is" in rollout.answer]
        assert called
        assert all(0 in rollout.mask for rollout in called), "no update is made of the tokens of a reply"
