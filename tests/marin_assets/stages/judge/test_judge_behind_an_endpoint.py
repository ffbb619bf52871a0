"""A judge behind OpenAI's API gives the verdicts that it gives as an engine: by tokens, or by messages alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from marin_assets.defaults import default_download, default_grades, default_judge
from marin_assets.documents import read_rows
from marin_assets.inference.engine import Endpoint, Engine
from marin_assets.inference.server import ModelServer
from marin_assets.stages.judge.answer_instructions import AnswerInstructionsConfig, answer_instructions
from marin_assets.stages.judge.compare_answers import CompareAnswersConfig, compare_answers
from marin_assets.stages.judge.conversations import JudgeError
from marin_assets.stages.judge.grade_answers import GradeAnswersConfig, grade_answers
from marin_assets.step.step import Step
from marin_assets.step.values import unwrap_versioned_value, versioned

Rule = Callable[[str], tuple[Engine, Path]]
Write = Callable[[str, list[Mapping[str, Any]]], str]
ENDPOINT = Endpoint(url="http://127.0.0.1:1/v1", model=versioned("judge"), key_variable="JUDGE_KEY")


@contextmanager
def endpoint_of(engine: Engine, folder: str) -> Iterator[Endpoint]:
    with ModelServer(engine, folder) as server:
        yield Endpoint(url=f"{server.url}/v1", model=server.name)


@pytest.fixture
def sides(write: Write) -> dict[str, str]:
    """The folders of two sides' answers: one is right at all sums, the other at every third."""
    rows = [{"instruction": f"{n} + 1", "output": f"{n + 1}"} for n in range(100, 112)]
    other = [{**row, "output": row["output"] if n % 3 == 0 else "nothing"} for n, row in enumerate(rows)]
    return {"answers_path": write("mine", rows), "baseline_path": write("theirs", other)}


def compared(sides: dict[str, str], output: Path, judge_path: str | None, **fields: Any) -> dict[str, Any]:
    config = CompareAnswersConfig(**sides, output_path=str(output), judge_path=judge_path, **fields)
    return compare_answers(unwrap_versioned_value(config))


@pytest.mark.parametrize("verdict", ["text", "logprobs"])
def test_verdicts_are_those_of_the_engine(
    rule: Rule, judge_path: str, sides: dict[str, str], tmp_path: Path, verdict: str
) -> None:
    engine, _ = rule("correct")
    of_engine = compared(sides, tmp_path / "engine", judge_path, engine=engine, verdict=verdict)
    assert (of_engine["wins"], of_engine["equal_answers"], of_engine["unreadable"]) == (8, 4, 0)
    with endpoint_of(engine, judge_path) as endpoint:
        by_tokens = compared(sides, tmp_path / "tokens", judge_path, engine=endpoint, verdict=verdict)
        assert by_tokens == of_engine
        if verdict == "text":
            by_messages = compared(sides, tmp_path / "messages", None, engine=endpoint, verdict=verdict)
            assert by_messages == of_engine


def test_an_endpoint_answers_and_grades_by_messages(rule: Rule, write: Write, judge_path: str, tmp_path: Path) -> None:
    bench = write("bench", [{"question_id": 81, "turns": ["One?", "Two?"]}])
    with endpoint_of(rule("count")[0], judge_path) as endpoint:
        config = AnswerInstructionsConfig(
            model_path=None, instructions_path=bench, engine=endpoint, output_path=str(tmp_path / "answers")
        )
        result = answer_instructions(unwrap_versioned_value(config))
    assert (result["answers"], result["too_long"]) == (2, 0)
    [(_, row)] = read_rows(next((tmp_path / "answers").glob("*.zst")).as_posix())
    assert [message["content"] for message in row["messages"]] == ["One?", "answer 1", "Two?", "answer 2"]
    with endpoint_of(rule("grade")[0], judge_path) as endpoint:
        grades = GradeAnswersConfig(
            answers_path=str(tmp_path / "answers"), judge_path=None, engine=endpoint, output_path=str(tmp_path / "g")
        )
        assert grade_answers(unwrap_versioned_value(grades))["grade"] == len("answer 1")


def test_a_judge_that_is_nowhere_or_whose_tokens_are_not_here_is_refused(sides: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match=r'verdict="logprobs" and no judge_path.*Set verdict="text"'):
        compared(sides, tmp_path, None, engine=ENDPOINT)
    with pytest.raises(JudgeError, match="The engine is None, and no folder of a model is given"):
        compared(sides, tmp_path, None, verdict="text")


def test_steps_know_the_model_of_the_endpoint_and_the_name_of_its_key() -> None:
    answers: Step = default_download("answers", "gs://b/answers")
    judge = default_judge("a", answers, answers, None, engine=ENDPOINT, verdict="text")
    grades = default_grades("a", answers, None, engine=ENDPOINT)
    assert judge.env == grades.env == ("JUDGE_KEY",)
