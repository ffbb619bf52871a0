"""Answers that are graded one by one, turn by turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import read_documents
from marin_assets.inference.engine import Engine
from marin_assets.stages.judge.conversations import JudgeError
from marin_assets.stages.judge.grade_answers import GradeAnswersConfig, grade_answers
from marin_assets.step.values import unwrap_versioned_value

Rule = Callable[[str], tuple[Engine, Path]]
Write = Callable[[str, list[Mapping[str, Any]]], str]


def chat(id_: str, *texts: str, **fields: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"id": id_, "messages": [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)], **fields}


ROWS = [
    chat("a", "Hello", "xxx", "Again", "xxxxx", category="talk"),
    chat("b", "Sum", "4", "Double", "8", category="math", metadata={"reference": ["4", "9"]}),
    chat("c", "Hello", "mute", category="talk"),
    chat("d", "Hello", "x" * 9000, category="talk"),
    chat("e", "Hello", "xxxxxxx", "More"),
]


def graded(answers_path: str, judge_path: str, engine: Engine | None, output: Path, **fields: Any) -> dict[str, Any]:
    config = GradeAnswersConfig(
        answers_path=answers_path, judge_path=judge_path, engine=engine, output_path=str(output), **fields
    )
    return grade_answers(unwrap_versioned_value(config))


def test_each_turn_has_a_grade_and_the_turns_of_a_question_are_a_group(
    write: Write, rule: Rule, judge_path: str, tmp_path: Path
) -> None:
    engine, requests = rule("grade")
    output = tmp_path / "output"
    result = graded(write("answers", ROWS), judge_path, engine, output)
    documents = {one.id: one for one in read_documents(str(output / "judgements.jsonl.zst"))}
    grades = {name: one.metadata.get("grade") for name, one in documents.items()}
    assert grades == {"a/1": 3, "a/2": 5, "b/1": 10, "b/2": 1, "c/1": None, "d/1": None, "e/1": 7}
    assert documents["c/1"].metadata["unreadable"] == "no_verdict"
    assert documents["d/1"].metadata["unreadable"] == "too_long"
    assert result["grade"] == pytest.approx(26 / 5)
    # by hand: sums of the residuals of the groups a, b, e are -2.4, 0.6 and 1.8
    assert result["grade_stderr"] == pytest.approx(((2.4**2 + 0.6**2 + 1.8**2) * 3 / 2) ** 0.5 / 5)
    assert {name: scores["grade"] for name, scores in result["scores"].items()} == {
        "grades": pytest.approx(5.2), "grades/turn 1": pytest.approx(20 / 3), "grades/turn 2": 3.0,
        "grades/math": 5.5, "grades/talk": 4.0,
    }  # fmt: skip
    assert (result["unreadable"], result["too_long"], result["unanswered"], result["graded"]) == (1, 1, 1, 5)
    assert result["ungraded_share"] == pytest.approx(3 / 8)
    second = next(json.loads(line) for line in requests.read_text().splitlines() if "Again" in line)
    assert "User: Hello\n\nAssistant: xxx\n\nUser: Again\n\nAssistant: xxxxx" in second
    page = (output / "judgements.html").read_text()
    assert all(f"<h2>{title}" in page for title in ("Higher grades", "Lower grades", "Not graded"))


@pytest.mark.parametrize(
    ("rows", "fields", "sentence"),
    [
        ([chat("a", "Hello")], {}, "has an answer. Give the output of answer_instructions"),
        ([ROWS[0], ROWS[0]], {}, "'a' occurs twice"),
        ([ROWS[0]], {"prompt": "{conversation} {reference}"}, r"\{reference\}, expected .*'conversation'"),
        ([ROWS[0]], {"reference_prompt": "{conversation}"}, r"has no \{reference\}"),
        ([ROWS[0]], {"max_tokens": 0}, "max_tokens=0"),
        ([{**ROWS[0], "reference": [7]}], {}, r"has reference=\[7\], expected a text for each turn"),
    ],
)
def test_bad_input_is_a_sentence(
    write: Write, judge_path: str, tmp_path: Path, rows: Any, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(JudgeError, match=sentence):
        graded(write("answers", rows), judge_path, None, tmp_path / "output", **fields)
