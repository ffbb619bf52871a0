"""Problems whose answer is a Python program, which is run with tests in a sandbox.

A test is an object {"input": …, "output": …}, for a program that prints, or an assertion about its functions, as a
text: "assert add(2, 3) == 5". The right output, and the literal of an assertion with "==", never enter the sandbox: the
program returns its own as a text, and they are compared here. So no object that equals all, no changed `assert` and no
early end passes. Any other assertion is decided in the sandbox, where a program can change what it means.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from marin_assets.stages.train.rl.environments.environment import Environment, Example, Prompt, asked
from marin_assets.stages.train.rl.environments.problems import ProblemError, Problems, read_problems
from marin_resources.host.sandbox import Limits, outcome_of, require_sandbox

FENCED = re.compile(r"```(?:python|py)?[^\S\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
WALL_S = 40.0
"""Time limit of all tests together, for a program that waits. Below the one of a method."""
NOT_LITERAL = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)

HARNESS = """
import io, json, sys
program, tests = compile({program!r}, "<program>", "exec"), json.loads({tests!r})
names = {{"__name__": "program"}}
if not all("input" in test for test in tests):
    exec(program, names)
def printed(text):
    written = io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    try:
        exec(program, {{"__name__": "__main__"}})
    except SystemExit:
        pass
    return written.getvalue().decode()
def answer_to(test):
    try:
        if "input" in test:
            return printed(test["input"])
        if "value" in test:
            return repr(eval(test["value"], names))
        exec(test["assertion"], names)
        return "holds"
    except BaseException as error:
        return None
ANSWER = json.dumps([answer_to(test) for test in tests])
"""


@dataclass(frozen=True, kw_only=True)
class CodeTests(Environment):
    """The reward is the share of the tests that pass, or 1 if all do. A program that meets a limit passes none."""

    problems: Problems
    """Rows, or a path: a file or folder of JSONL or parquet, such as the output of a step."""
    problem_field: str = "problem"
    tests_field: str = "tests"
    all_or_nothing: bool = True
    instruction: str = "\nWrite a program in Python, in a block of code.\n"
    """Follows the problem."""
    continues_prompt: bool = False
    """The program is the problem's text, which the answer continues, as with HumanEval. Else it is the last block of
    code in the answer, or the whole answer if it has none."""
    cpu_s: int = 3
    """Limit of CPU time of all tests together."""
    memory_bytes: int = 2**30
    is_chat: bool = False
    """The prompt is a message of a user, for a model with a chat template."""

    def prepare(self) -> None:
        """Raises ProblemError; SandboxError on a machine that cannot run programs in a sandbox."""
        for number, row in enumerate(self._rows):
            _check_tests(row[self.tests_field], number)
        require_sandbox()

    def example(self, seed: int, index: int) -> Example:
        row = self._rows[index % len(self._rows)]
        return {"problem": str(row[self.problem_field]), "tests": list(row[self.tests_field])}

    def prompt(self, example: Example) -> Prompt:
        return asked(example["problem"] + self.instruction, self.is_chat)

    def reward(self, example: Example, text: str) -> float:
        program = example["problem"] + text if self.continues_prompt else program_in(text)
        tests = example["tests"]
        harness = HARNESS.format(program=program, tests=json.dumps([_shown(test) for test in tests]))
        limits = Limits(cpu_s=self.cpu_s, wall_s=WALL_S, memory_bytes=self.memory_bytes)
        answers = _texts(outcome_of(harness, limits).answer)
        if len(answers) != len(tests):
            return 0.0
        passed = sum(map(_passes, tests, answers))
        return float(passed == len(tests)) if self.all_or_nothing else passed / len(tests)

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return read_problems(self.problems, (self.problem_field, self.tests_field))


def program_in(text: str) -> str:
    """The last block of code in an answer; the whole answer if it has none."""
    blocks = FENCED.findall(text)
    return blocks[-1] if blocks else text


def _check_tests(tests: Any, number: int) -> None:
    if not isinstance(tests, list) or not tests:
        raise ProblemError(f"Problem {number} has the tests {tests!r:.100}, expected a list of at least one.")
    for test in tests:
        try:
            usable = isinstance(test, str) and isinstance(ast.parse(test).body[-1], ast.Assert)
        except (SyntaxError, ValueError, IndexError):
            usable = False
        if not usable and not (
            isinstance(test, dict) and all(isinstance(test.get(part), str) for part in ("input", "output"))
        ):
            raise ProblemError(
                f"Problem {number} has the test {test!r:.100}, expected a text that ends with an assertion, 'assert "
                "add(2, 3) == 5', or an object with the texts 'input' and 'output'."
            )


def _shown(test: Any) -> dict[str, str]:
    """The part of a test that the sandbox is given."""
    if isinstance(test, dict):
        return {"input": test["input"]}
    compared = _compared(test)
    return {"assertion": test} if compared is None else {"value": compared[0]}


def _passes(test: Any, answer: str | None) -> bool:
    """Whether this is the right answer to a test."""
    if answer is None:
        return False
    if isinstance(test, dict):
        return _lines(answer) == _lines(test["output"])
    compared = _compared(test)
    if compared is None:
        return answer == "holds"
    try:
        return bool(ast.literal_eval(answer) == compared[1])
    except NOT_LITERAL:
        return False


def _compared(test: str) -> tuple[str, Any] | None:
    """The expression and the literal that an assertion compares by "=="; None for another assertion."""
    statement, *more = ast.parse(test).body
    if more or not isinstance(statement, ast.Assert) or not isinstance(statement.test, ast.Compare):
        return None
    first, operators, others = statement.test.left, statement.test.ops, statement.test.comparators
    if len(operators) != 1 or not isinstance(operators[0], ast.Eq):
        return None
    for value, literal in ((first, others[0]), (others[0], first)):
        try:
            return ast.unparse(value), ast.literal_eval(literal)
        except NOT_LITERAL:
            continue
    return None


def _texts(answer: str) -> list[str | None]:
    """The answers that the sandbox returned; none if it returned something else."""
    try:
        answers = json.loads(answer)
    except (ValueError, RecursionError):
        return []
    return answers if isinstance(answers, list) and all(isinstance(text, str | None) for text in answers) else []


def _lines(text: str) -> list[str]:
    """The lines without spaces at their ends, and without empty ones at the end."""
    return [line.rstrip() for line in text.rstrip().split("\n")]
