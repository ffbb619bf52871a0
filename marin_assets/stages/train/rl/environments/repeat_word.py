"""Repeat a word that is given. Some words are held out, to see whether the task is learnt or its words."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from marin_assets.stages.train.rl.environments.environment import Environment, Example, drawn

WORDS = (
    *("name", "class", "value", "object", "method", "list", "string", "number", "type", "call", "return", "module"),
    *("function", "argument", "expression", "statement", "attribute", "import", "sequence", "integer", "float", "key"),
    *("code", "file", "line", "block", "error", "index", "item", "loop", "test", "table", "tree", "node", "path"),
)
HELD_OUT_OF = 5
"""One of this number of words is held out, by its checksum."""


@dataclass(frozen=True, kw_only=True)
class RepeatWord(Environment):
    """The reward is the share of the first `times` words of the answer that are the word, less 0.1 for each word more,
    and at least 0."""

    times: int = 3
    held_out: bool = False
    """Examples have the words that others of this class never have."""

    def example(self, seed: int, index: int) -> Example:
        words = [word for word in WORDS if (zlib.crc32(word.encode()) % HELD_OUT_OF == 0) is self.held_out]
        return {"word": drawn(seed, index).choice(words)}

    def prompt(self, example: Example) -> str:
        return f"Repeat {example['word']}:"

    def reward(self, example: Example, text: str) -> float:
        words = text.split()
        right = sum(word == example["word"] for word in words[: self.times])
        return max(right / self.times - 0.1 * max(len(words) - self.times, 0), 0.0)
