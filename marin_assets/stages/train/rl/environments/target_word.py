"""Write one word as often as possible: a dense reward, which a tiny model learns in seconds. A test of a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marin_assets.stages.train.rl.environments.environment import Environment, Example, drawn


@dataclass(frozen=True, kw_only=True)
class TargetWord(Environment):
    """The reward is the number of times that `word` is in the answer, divided by `scale`."""

    word: str = " the"
    scale: float = 8.0
    openings: Sequence[str] = ("Return", "If", "This", "When", "An", "Every", "Names", "Objects")
    """Texts to continue."""

    def example(self, seed: int, index: int) -> Example:
        return {"opening": drawn(seed, index).choice(list(self.openings))}

    def prompt(self, example: Example) -> str:
        opening: str = example["opening"]
        return opening

    def reward(self, example: Example, text: str) -> float:
        return text.count(self.word) / self.scale
