"""The sum of two digits."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.stages.train.rl.environments.environment import Environment, Example, drawn


@dataclass(frozen=True, kw_only=True)
class DigitSums(Environment):
    """The reward is 1 if the answer is the sum, and else 0."""

    def example(self, seed: int, index: int) -> Example:
        draw = drawn(seed, index)
        return {"a": draw.randrange(10), "b": draw.randrange(10)}

    def prompt(self, example: Example) -> str:
        return f"Question: {example['a']} + {example['b']}\nAnswer:"

    def reward(self, example: Example, text: str) -> float:
        return float(text.strip() == str(example["a"] + example["b"]))
