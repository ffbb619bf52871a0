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


@dataclass(frozen=True, kw_only=True)
class Slow(Turns):
    """Answers of the example with this index are graded when a file exists."""

    index: int
    until: str

    def example(self, seed: int, index: int) -> dict[str, Any]:
        return {"number": index % 1000, "is_slow": index == self.index}

    def reward(self, example: dict[str, Any], text: str) -> float:
        while example["is_slow"] and not os.path.exists(self.until):
            time.sleep(0.05)
        return super().reward(example, text)


@dataclass(frozen=True, kw_only=True)
class Flat(Turns):
    """All answers of this share of the examples have the reward 1."""

    share: float

    def reward(self, example: dict[str, Any], text: str) -> float:
        return 1.0 if example["number"] < 1000 * self.share else super().reward(example, text)


class Hostile:
    """Does in `example`, `prompt` or `reply` what no environment should; `kind` is what."""

    stops = ("e",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def example(self, seed: int, index: int) -> Any:
        if self.kind == "ends":
            return [{"number": 1}][index]
        if self.kind == "stops":
            raise StopIteration
        circle: list[Any] = []
        circle.append(circle)
        examples: dict[str, Any] = {
            "huge": {"text": "x" * 2**21},
            "key": {"$dataclass": "os:system"},
            "circle": circle,
            "bytes": {"data": b"x"},
            "nan": {"number": float("nan")},
            "unprintable": Unprintable(),
        }
        return examples.get(self.kind, {"number": 1})  # the same for ever

    def prompt(self, example: dict[str, Any]) -> Any:
        if self.kind == "unprintable error":
            raise Unprintable
        prompts: dict[str, Any] = {
            "long text": "word " * 2**20,
            "surrogate": "\ud800",
            "number": 3,
            "messages": [{"content": "no role"}],
        }
        return prompts.get(self.kind, "Number one is")

    def reply(self, example: dict[str, Any], text: str) -> Any:
        return {"long reply": " word" * 2**20, "odd reply": 3}.get(self.kind)

    def reward(self, example: dict[str, Any], text: str) -> Any:
        return Unprintable() if self.kind == "odd reward" else len(text) / 10


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


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


class NotPrepared(Plain):
    """Lacks what it needs."""

    def __init__(self) -> None:
        super().__init__("")

    def prepare(self) -> None:
        raise RuntimeError("no dictionary")


class OfSets(Plain):
    """Its examples have the order of a set, which is that of the hashes of texts."""

    def __init__(self) -> None:
        super().__init__("")

    def example(self, seed: int, index: int) -> dict[str, Any]:
        return {"words": list({f"word {number}" for number in range(50)})}
