"""An environment is a class that makes examples, gives the model their prompts, and grades its answers.

All methods are functions of their arguments alone, so that a training can be repeated. An environment runs in a process
of its own: a method that raises, hangs or returns no number costs that rollout, and nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, ClassVar

Example = dict[str, Any]
"""A problem: values that JSON has."""
Prompt = str | list[dict[str, str]]
"""A text to continue, or messages with role and content, for a model with a chat template."""


class Environment:
    """The base of the environments here. A class with `example`, `prompt` and `reward` needs no base."""

    stops: ClassVar[Sequence[str]] = ()
    """Texts that end a turn of the model, in addition to its own end token. They stay in the answer."""
    extras: ClassVar[Sequence[str]] = ()
    """Extras of the project that its process needs, beside that of the training."""

    def prepare(self) -> None:
        """Called once, before any other method, in the process that calls those: read files, look for programs.

        An error ends the training with its text.
        """

    def example(self, seed: int, index: int) -> Example:
        """Return the problem with this number, among those of a seed."""
        raise NotImplementedError

    def prompt(self, example: Example) -> Prompt:
        """Return what the model is given."""
        raise NotImplementedError

    def reward(self, example: Example, text: str) -> float:
        """Return the reward of an answer. `text` is all that follows the prompt, replies included."""
        raise NotImplementedError

    def reply(self, example: Example, text: str) -> str | None:
        """Return the text that follows a turn of the model, after which it continues; None if the answer has ended.

        The model is not trained on the tokens of a reply. `text` is as in `reward`.
        """
        return None


def asked(text: str, is_chat: bool) -> Prompt:
    """The prompt with this text: as it is, or as the message of a user."""
    return [{"role": "user", "content": text}] if is_chat else text


def drawn(seed: int, index: int) -> random.Random:
    """Random numbers of the example with this number, the same in every process."""
    return random.Random(f"{seed} {index}")
