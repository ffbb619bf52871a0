"""Environments on problems of one's own: their rows, right and wrong answers, and programs that cheat."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import write_rows
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.environments.code_tests import CodeTests, program_in
from marin_assets.stages.train.rl.environments.environment import Environment
from marin_assets.stages.train.rl.environments.function_environment import FunctionEnvironment
from marin_assets.stages.train.rl.environments.math_answers import MathAnswers, final_answer
from marin_assets.stages.train.rl.environments.problems import ProblemError, read_problems
from marin_assets.stages.train.rl.lessons import lesson_of, open_environment
from marin_assets.step.values import unwrap_versioned_value

ROWS = [{"problem": f"{number} + 1?", "answer": str(number + 1)} for number in range(5)]


def opened(environment: Environment) -> Any:
    return open_environment("mine", unwrap_versioned_value(lesson_of(environment)))


def test_problems_are_rows_of_the_config_or_of_files(tmp_path: Path) -> None:
    write_rows(str(tmp_path / "a.jsonl"), ROWS[:2])
    write_rows(str(tmp_path / "b/c.jsonl.zst"), ROWS[2:3])
    write_rows(str(tmp_path / "d.parquet"), ROWS[3:])
    (tmp_path / ".executor_info").write_text("{}")
    (tmp_path / "README.md").write_text("no rows")
    assert read_problems(str(tmp_path), ("problem",)) == read_problems(ROWS, ("answer",)) == ROWS
    environment = opened(MathAnswers(problems=str(tmp_path)))
    assert environment.example(0, 7) == environment.example(9, 7) == ROWS[2]
    assert environment.prompt(ROWS[2]) == "2 + 1?\nPut the answer into \\boxed{}.\n"
    assert read_problems(tmp_path, ("problem",)) == ROWS  # type: ignore[arg-type]
    for odd in (3, {"problem": "?"}, None):
        with pytest.raises(ProblemError, match="expected a list of rows, or a path"):
            read_problems(odd, ())  # type: ignore[arg-type]
    chat = MathAnswers(problems=ROWS, is_chat=True, instruction="")
    assert chat.prompt(ROWS[0]) == [{"role": "user", "content": "0 + 1?"}]


MISTAKES: dict[str, tuple[str, str]] = {
    "no such field": (json.dumps({"question": "?", "answer": 1}), "line 1 of .* has no field 'problem'.* has question"),
    "null": (json.dumps({"problem": "?", "answer": None}), "has no field 'answer'"),
    "not JSON": ("problem: 1", "line 1 of .* cannot be read: invalid_json"),
    "a list": ("[1]", "cannot be read: not_an_object"),
    "empty": ("", "there is no row"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_row_that_is_no_problem_is_named_at_the_start(mistake: str, tmp_path: Path) -> None:
    line, says = MISTAKES[mistake]
    (tmp_path / "rows.jsonl").write_text(line and f"{line}\n")
    with pytest.raises(TrainError, match=f"'mine' cannot be prepared: .*{says}"):
        opened(MathAnswers(problems=str(tmp_path)))


def test_a_folder_without_rows_and_one_that_does_not_exist_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("?")
    with pytest.raises(TrainError, match="where no file ends with one of"):
        opened(MathAnswers(problems=str(tmp_path)))
    with pytest.raises(TrainError, match=re.escape(str(tmp_path / "nowhere"))):
        opened(MathAnswers(problems=str(tmp_path / "nowhere")))


@pytest.mark.parametrize(
    ("right", "text", "reward"),
    [
        ("12", "The answer is 12.", 1.0),
        ("12", "First \\boxed{11}, no, \\boxed{12}", 1.0),
        ("12", "\\boxed{12}, no, \\boxed{11}", 0.0),
        ("12", "\\boxed{12}. Then \\boxed{", 1.0),
        ("12", "12 apples, no 13", 0.0),
        ("1/2", "\\boxed{0.5}", 1.0),
        ("\\frac{1}{2}", "so $\\boxed{\\frac{2}{4}}$", 1.0),
        ("x^2 + 1", "\\boxed{1 + x^2}", 1.0),
        ("12", "\\boxed{}", 0.0),
        ("12", "\\boxed{" * 3000, 0.0),
        ("12", "(" * 5000 + "12", 0.0),
        ("12", "1" * 10_000, 0.0),
        ("12", "\\boxed{" + "1+" * 5000 + "1}", 0.0),
        ("12", "\x00\ud800", 0.0),
    ],
)
def test_an_answer_of_mathematics_is_compared_as_an_expression(right: str, text: str, reward: float) -> None:
    assert MathAnswers(problems=ROWS).reward({"problem": "?", "answer": right}, text) == reward


@pytest.mark.long
@pytest.mark.parametrize(
    "text", ["\\boxed{9^{9^{9^9}}}", "9^9^9^9", "$\\int_0^x e^{e^{t^2}} \\sin(t^t) dt$", "10000000!"]
)
def test_an_answer_that_takes_for_ever_is_wrong_after_the_time_limit(text: str) -> None:
    assert MathAnswers(problems=ROWS).reward({"problem": "?", "answer": "12"}, text) == 0.0


def test_the_final_answer_is_the_last_box_that_is_closed() -> None:
    assert final_answer("\\boxed{1} \\boxed{\\frac{2}{3}} \\boxed{4") == "$\\frac{2}{3}$"
    assert final_answer("} \\boxed{a}{b}") == "$a$"
    assert final_answer("no box 5") == "no box 5"


def test_a_problem_whose_own_answer_is_no_expression_is_named() -> None:
    with pytest.raises(ValueError, match="the right answer '' of the problem is no expression"):
        MathAnswers(problems=ROWS).reward({"problem": "?", "answer": ""}, "12")


ADD = [
    {
        "problem": "add",
        "tests": [
            "assert add(2, 3) == 5",
            "assert 0 == add(0, 0)",
            "assert list({1: [add(1, 1)]}.items()) == [(1, [2])]",
        ],
    }
]
EQUALS_ALL = "class All:\n    def __eq__(self, other): return True\n"
CHEATS = {
    "equals all": f"{EQUALS_ALL}def add(a, b): return All()",
    "looks equal": f"{EQUALS_ALL}    def __repr__(self): return 'True'\ndef add(a, b): return All()",
    "ends early": "import os; os._exit(0)",
    "exits": "import sys; sys.exit(0)",
    "raises at the end": "import atexit\ndef add(a, b): raise SystemExit(0)",
    "own json": 'import json\njson.dumps = lambda *a, **k: \'["True", "True", "True"]\'\ndef add(a, b): return 1',
    "own answer": "import sys\nframe = sys._getframe()\nwhile frame:\n    frame.f_globals['ANSWER'] = '[1, 1, 1]'\n"
    "    frame = frame.f_back",
    "deep": "class Deep:\n    def __repr__(self): return '(' * 30000 + ')' * 30000\ndef add(a, b): return Deep()",
    "memory": "x = bytearray(2**33)",
    "a file": "open('/tmp/x', 'w')",
    "no program": "banana",
}


@pytest.mark.usefixtures("sandbox")
def test_a_right_program_passes_and_one_that_cheats_does_not() -> None:
    environment = CodeTests(problems=ADD, all_or_nothing=False)
    example = environment.example(0, 0)
    assert environment.reward(example, "def add(a, b):\n    print('x' * 10**6)\n    return a + b") == 1.0
    assert environment.reward(example, "def add(a, b): return a * b") == pytest.approx(1 / 3)
    assert CodeTests(problems=ADD).reward(example, "def add(a, b): return a * b") == 0.0
    for name, program in CHEATS.items():
        assert environment.reward(example, program) == 0.0, name
    assert CodeTests(problems=ADD, cpu_s=1).reward(example, "def add(a, b):\n    while True: pass") == 0.0


@pytest.mark.usefixtures("sandbox")
def test_a_program_that_prints_is_compared_by_its_lines() -> None:
    rows = [{"problem": "sum", "tests": [{"input": "1 2\n", "output": "3\n"}, {"input": "4 5", "output": "9"}]}]
    environment = opened(CodeTests(problems=rows, all_or_nothing=False))
    example = environment.example(0, 0)
    for program in (
        "print(sum(map(int, input().split())))",
        "import sys\nprint(sum(map(int, sys.stdin.read().split())), end=' \\n')\nsys.exit(0)",
        "import sys\nif __name__ == '__main__':\n    print(sum(map(int, sys.stdin.buffer.read().split())))",
    ):
        assert environment.reward(example, program) == 1.0
    assert environment.reward(example, "print(3)") == 0.5


def test_the_program_is_the_last_block_of_code_or_the_whole_answer() -> None:
    assert program_in("So:\n```python\nx = 1\n```\nor\n```\nx = 2\n```\nend") == "x = 2\n"
    assert program_in("```py\nx = 1") == "x = 1"
    assert program_in("x = 3") == "x = 3"


@pytest.mark.usefixtures("sandbox")
def test_an_answer_may_continue_the_problem() -> None:
    rows = [{"problem": "def add(a, b):\n", "tests": ["assert add(2, 3) == 5"]}]
    environment = CodeTests(problems=rows, continues_prompt=True, instruction="")
    assert environment.prompt(environment.example(0, 0)) == "def add(a, b):\n"
    assert environment.reward(environment.example(0, 0), "    return a + b") == 1.0


@pytest.mark.parametrize("tests", [[], "assert f() == 1", ["f() == 1"], ["assert ("], [{"input": "1"}], [3]])
def test_tests_that_are_none_are_named(tests: Any) -> None:
    with pytest.raises(TrainError, match="Problem 0 has the test"):
        opened(CodeTests(problems=[{"problem": "?", "tests": tests}]))


def test_without_bubblewrap_programs_are_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TrainError, match=r"'mine' cannot be prepared: .*'bwrap' is not installed. Install it"):
        opened(CodeTests(problems=ADD))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"reward_function": "no.such:thing"}, "cannot be imported"),
        ({"reward_function": "spelling"}, "cannot be imported"),
        ({"reward_function": "rl_environments:spellin"}, "has no 'spellin'"),
        ({"reward_function": "rl_training:EOS"}, "which is 1. Name a function"),
        ({"prompt_format": "Spell {wrd}"}, "row 0 of problems has no field 'wrd', expected wrd; it has word"),
        ({"prompt_format": "Spell {"}, "other braces twice"),
        ({"prompt_format": "Spell {}"}, "has no field ''"),
        ({"examples": []}, "there is no row"),
        ({"examples": ["tea"]}, "row 0 of problems cannot be read: it is no object"),
    ],
)
def test_a_mistake_in_a_function_of_ones_own_is_a_sentence(changes: Any, says: str) -> None:
    settings = {"examples": [{"word": "a"}], "prompt_format": "{word}", "reward_function": "rl_environments:spelling"}
    with pytest.raises(TrainError, match=re.escape(says)):
        opened(FunctionEnvironment(**{**settings, **changes}))
