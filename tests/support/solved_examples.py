"""Examples of environments with their right answers: a model that has seen some is sometimes right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sum_chats import Chat, chat_of

from marin_assets.stages.train.rl.environments.calculator import Calculator
from marin_assets.stages.train.rl.environments.digit_sums import DigitSums
from marin_assets.stages.train.rl.environments.repeat_word import RepeatWord


def turns_of(environment: Any, example: dict[str, Any]) -> list[str]:
    """The prompt and the answer; with a reply, what is before and after it."""
    prompt = environment.prompt(example)
    if isinstance(environment, RepeatWord):
        return [prompt, f" {example['word']}" * environment.times]
    total = example["a"] + example["b"]
    if isinstance(environment, DigitSums):
        return [prompt, f" {total}"]
    assert isinstance(environment, Calculator)
    call = f" {example['a']} + {example['b']};"
    return [prompt, call, str(environment.reply(example, call)), f" {total}."]


def solved(environment: Any, count: int, *, seed: int = 1) -> Iterable[Chat]:
    """Chats of `count` examples, of another seed than that of a training."""
    for number in range(count):
        yield chat_of(*turns_of(environment, environment.example(seed, number)))
