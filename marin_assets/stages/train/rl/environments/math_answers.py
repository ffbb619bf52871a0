r"""Problems of mathematics with their answers: the last \boxed{…} of a text, or else its last number, is compared.

Two answers are equal if Math-Verify takes them as the same expression: 1/2, 0.5 and \frac{1}{2}.
https://github.com/huggingface/Math-Verify
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from marin_assets.stages.train.rl.environments.environment import Environment, Example, Prompt, asked
from marin_assets.stages.train.rl.environments.problems import Problems, read_problems

BOX, BRACE = "\\boxed{", re.compile("[{}]")
TIME_LIMIT_S = 5
"""For each of: to read the right answer, to read the text, to compare. An expression such as 9^9^9^9 takes for ever."""
MOST_CHARACTERS = 2_000
"""Length of an expression. One that is longer is wrong."""


@dataclass(frozen=True, kw_only=True)
class MathAnswers(Environment):
    """The reward is 1 if the answers are equal, and else 0."""

    problems: Problems
    """Rows, or a path: a file or folder of JSONL or parquet, such as the output of a step."""
    problem_field: str = "problem"
    answer_field: str = "answer"
    """The right answer, without a box: a text in LaTeX, or a number."""
    instruction: str = "\nPut the answer into \\boxed{}.\n"
    """Follows the problem."""
    is_chat: bool = False
    """The prompt is a message of a user, for a model with a chat template."""
    extras: ClassVar[Sequence[str]] = ("rewards",)

    def prepare(self) -> None:
        import math_verify  # noqa: F401  a missing package ends the training at its start

        _ = self._rows

    def example(self, seed: int, index: int) -> Example:
        row = self._rows[index % len(self._rows)]
        return {"problem": str(row[self.problem_field]), "answer": str(row[self.answer_field])}

    def prompt(self, example: Example) -> Prompt:
        return asked(example["problem"] + self.instruction, self.is_chat)

    def reward(self, example: Example, text: str) -> float:
        """Raises ValueError for a problem whose own answer is no expression."""
        from math_verify import parse, verify

        right = parse(f"${example['answer']}$", parsing_timeout=TIME_LIMIT_S)
        if not verify(right, right, timeout_seconds=TIME_LIMIT_S):
            raise ValueError(f"the right answer {example['answer']!r} of the problem is no expression")
        answer = final_answer(text)
        if len(answer) > MOST_CHARACTERS:
            return 0.0
        return float(verify(right, parse(answer, parsing_timeout=TIME_LIMIT_S), timeout_seconds=TIME_LIMIT_S))

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return read_problems(self.problems, (self.problem_field, self.answer_field))


def final_answer(text: str) -> str:
    r"""The content of the last \boxed{…} whose braces are closed, as a formula; without any, the end of the text."""
    opened, last = list[int](), None
    for brace in BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.end())
        elif opened:
            first = opened.pop()
            if text.endswith(BOX, 0, first) and (last is None or first > last.start):
                last = slice(first, brace.start())
    return text[-MOST_CHARACTERS:] if last is None else f"${text[last]}$"
