"""A question to the process that draws batches, and its answer: a line of JSON each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Question:
    """Some sequences of the batch of a step."""

    config: Mapping[str, Any]
    """The config of the training as its record has it, with its paths of today."""
    prefixes: tuple[str, ...]
    """Nothing outside of them is read."""
    step: int
    first: int
    count: int

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Question:
        fields = json.loads(text)
        return Question(**{**fields, "prefixes": tuple(fields["prefixes"])})


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A sequence of the batch."""

    tokens: list[int]
    learnt: list[bool]
    """Whether the loss of the token after each counts."""
    cache: str
    """Path of the split of a token cache that it is from; empty for packed chats."""
    first_token: int
    """Number of its first token, counted over all rows of the cache."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The sequences, or the sentence of an error with the status of the page."""

    size: int = 0
    """Sequences of the whole batch."""
    sequences: tuple[Drawn, ...] = ()
    error: str = ""
    status: int = 422

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Answer:
        fields = json.loads(text)
        return Answer(**{**fields, "sequences": tuple(Drawn(**drawn) for drawn in fields["sequences"])})
