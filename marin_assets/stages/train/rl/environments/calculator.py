"""A sum by a calculator, in two turns: the model writes "3 + 4;", is given " 7", and writes the result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from marin_assets.stages.train.rl.environments.environment import Environment, Example, drawn

CALL = re.compile(r"\s*(\d{1,6})\s*\+\s*(\d{1,6})\s*;")


@dataclass(frozen=True, kw_only=True)
class Calculator(Environment):
    """The reward is 0.5 for a call of the calculator with the two numbers, and 0.5 for their sum after its reply."""

    most: int = 9
    """The largest number of a problem."""
    stops: ClassVar[Sequence[str]] = (";",)

    def example(self, seed: int, index: int) -> Example:
        draw = drawn(seed, index)
        return {"a": draw.randrange(self.most + 1), "b": draw.randrange(self.most + 1)}

    def prompt(self, example: Example) -> str:
        return f"Sum of {example['a']} and {example['b']}:"

    def reply(self, example: Example, text: str) -> str | None:
        call = CALL.fullmatch(text)
        return None if call is None else f" {int(call[1]) + int(call[2])}. So it is"

    def reward(self, example: Example, text: str) -> float:
        call = CALL.match(text)
        if call is None or {int(call[1]), int(call[2])} != {example["a"], example["b"]}:
            return 0.0
        _, _, result = text.partition(". So it is")
        return 0.5 + 0.5 * (result.strip().rstrip(".;") == str(example["a"] + example["b"]))
