"""Examples of one's own, and a function of one's own that grades: the shortest way to a task.

    FunctionEnvironment(examples=[{"word": "tea"}], prompt_format="Spell {word}:",
                        reward_function="my_package.tasks:spelling")

The function has the arguments of a method: `spelling(example, text)` returns a number. Its name is in the version, its
code is not: a function that grades otherwise is given another name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from typing import Any

from marin_assets.stages.train.rl.environments.environment import Environment, Example, Prompt, asked
from marin_assets.stages.train.rl.environments.problems import Problems, read_problems
from marin_resources.types.errors import InvalidInputError
from marin_resources.wire.reference import load


class FunctionError(InvalidInputError):
    """A prompt or a function that cannot be used."""


@dataclass(frozen=True, kw_only=True)
class FunctionEnvironment(Environment):
    """The reward is that of the function."""

    examples: Problems
    """Rows, or a path: a file or folder of JSONL or parquet, such as the output of a step."""
    prompt_format: str
    """The prompt, with the fields of a row in braces: "Spell {word}:"."""
    reward_function: str
    """The function of an example and a text, as "module:function"."""
    is_chat: bool = False
    """The prompt is a message of a user, for a model with a chat template."""

    def prepare(self) -> None:
        """Raises FunctionError, ProblemError."""
        _ = self._rows, self._function

    def example(self, seed: int, index: int) -> Example:
        return self._rows[index % len(self._rows)]

    def prompt(self, example: Example) -> Prompt:
        return asked(self.prompt_format.format_map(example), self.is_chat)

    def reward(self, example: Example, text: str) -> float:
        return self._function(example, text)

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return read_problems(self.examples, self._prompt_fields())

    @cached_property
    def _function(self) -> Callable[[Example, str], float]:
        try:
            function = load(self.reward_function)
        except (ImportError, ValueError) as error:  # UnimportableError is a ValueError
            raise FunctionError(
                f"reward_function is {self.reward_function!r}, which cannot be imported ({error}). Name a function at "
                "the top level of a module, as 'module:function'."
            ) from error
        if not callable(function):
            raise FunctionError(
                f"reward_function is {self.reward_function!r}, which is {function!r:.60}. Name a function."
            )
        return function  # type: ignore[no-any-return]

    def _prompt_fields(self) -> list[str]:
        try:
            return [field for _, field, _, _ in Formatter().parse(self.prompt_format) if field is not None]
        except ValueError as error:
            raise FunctionError(
                f"prompt_format is {self.prompt_format!r} ({error}), expected a text with the fields of a row in "
                "braces, and other braces twice: '{{'."
            ) from error
