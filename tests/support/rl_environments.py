"""Environments that tests train on: one with several turns, and one that fails in every way."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from marin_assets.stages.train.rl.environments.environment import Environment


@dataclass(frozen=True, kw_only=True)
class Turns(Environment):
    """Each turn ends with an "e", and is replied to twice."""

    stops: ClassVar[Sequence[str]] = ("e",)

    def example(self, seed: int, index: int) -> dict[str, Any]:
        return {"number": index % 1000}

    def prompt(self, example: dict[str, Any]) -> str:
        return f"Number {example['number']} is"

    def reply(self, example: dict[str, Any], text: str) -> str | None:
        return " (go on)" if text.count(" (go on)") < 2 else None

    def reward(self, example: dict[str, Any], text: str) -> float:
        return text.count("e") / 4 + len(text) / 1000


@dataclass(frozen=True, kw_only=True)
class Faulty(Environment):
    """`fault` is what goes wrong with every third answer, by its length."""

    fault: str

    def example(self, seed: int, index: int) -> dict[str, Any]:
        return {"number": index % 10}

    def prompt(self, example: dict[str, Any]) -> str:
        if self.fault == "long":
            return "a long prompt " * 100
        return f"Number {example['number']}"

    def reward(self, example: dict[str, Any], text: str) -> Any:
        if len(text) % 3 or self.fault == "long":
            return len(text) / 10
        if self.fault == "raises":
            raise KeyError("no answer")
        if self.fault == "hangs":
            time.sleep(3600)
        if self.fault == "dies":
            os._exit(3)
        return {"nan": float("nan"), "none": None}[self.fault]


class Plain:
    """A class of a user's own, without a base: it wants short answers."""

    def __init__(self, word: str) -> None:
        self.word = word

    def example(self, seed: int, index: int) -> dict[str, Any]:
        return {"index": index % 7}

    def prompt(self, example: dict[str, Any]) -> str:
        return f"{self.word} {example['index']}"

    def reward(self, example: dict[str, Any], text: str) -> float:
        return -len(text) / 10


class NoReward:
    def example(self, seed: int, index: int) -> dict[str, Any]:
        return {}

    def prompt(self, example: dict[str, Any]) -> str:
        return "?"


def spelling(example: dict[str, Any], text: str) -> float:
    """A function of a user's own."""
    return float(text.strip() == "-".join(example["word"]))
