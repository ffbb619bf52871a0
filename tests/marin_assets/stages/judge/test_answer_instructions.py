"""Answers to instructions of one or more turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rule_judge import write_judge_folder

from marin_assets.documents import read_rows
from marin_assets.inference.engine import Engine
from marin_assets.stages.judge.answer_instructions import AnswerInstructionsConfig, answer_instructions
from marin_assets.stages.judge.conversations import JudgeError, read_conversations
from marin_assets.step.values import unwrap_versioned_value

Rule = Callable[[str], tuple[Engine, Path]]
Write = Callable[[str, list[Mapping[str, Any]]], str]

BENCH = {"question_id": 81, "category": "math", "turns": ["One?", "Two?"], "reference": ["1", "2"]}
ALPACA = {"instruction": "Write a line.", "output": "of another model", "dataset": "x"}
CHAT = {
    "id": "chat",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "of the data"},
        {"role": "user", "content": "Again"},
    ],
}


def answered(instructions: str, model_path: str, engine: Engine | None, output: Path, **fields: Any) -> dict[str, Any]:
    config = AnswerInstructionsConfig(
        model_path=model_path, instructions_path=instructions, engine=engine, output_path=str(output), **fields
    )
    return answer_instructions(unwrap_versioned_value(config))


def test_a_later_turn_has_the_models_own_answer_before_it(
    write: Write, rule: Rule, judge_path: str, tmp_path: Path
) -> None:
    engine, requests = rule("count")
    result = answered(write("rows", [BENCH, ALPACA, CHAT]), judge_path, engine, tmp_path / "output")
    assert result == {
        "instructions": 3, "answers": 5, "tokens": 15, "ended_by_limit": 0, "empty": 0, "too_long": 0
    }  # fmt: skip
    conversations = read_conversations(str(tmp_path / "output"))
    assert {one.id: one.answers for one in conversations.values() if len(one.turns) > 1} == {
        "81": ("answer 1", "answer 2"),
        "chat": ("answer 1", "answer 2"),
    }
    assert (conversations["81"].category, conversations["81"].references) == ("math", ("1", "2"))
    assert conversations["chat"].system == "Be brief."
    assert sorted(conversations) == sorted(read_conversations(str(tmp_path / "rows")))
    prompts = [json.loads(line) for line in requests.read_text().splitlines()]
    assert "user: One?\nassistant: answer 1\nuser: Two?\nassistant:" in prompts
    assert not any("of the data" in prompt for prompt in prompts)


def test_a_prompt_beyond_the_window_ends_the_conversation_and_is_counted(
    write: Write, rule: Rule, tmp_path: Path
) -> None:
    model = write_judge_folder(tmp_path / "small", window=200)
    rows = [
        {"id": "a", "turns": ["Hello", "x" * 500, "more"]},
        {"id": "b", "turns": ["x" * 500]},
        {"id": "c", "turns": ["Hello"]},
    ]
    result = answered(write("rows", rows), model, rule("count")[0], tmp_path / "output", max_tokens=20)
    assert (result["answers"], result["too_long"]) == (2, 2)
    (shard,) = Path(tmp_path, "output").glob("*.jsonl.zst")
    written = {row["id"]: row for _, row in read_rows(str(shard)) if isinstance(row, dict)}
    roles = {id_: [message["role"] for message in row["messages"]] for id_, row in written.items()}
    assert roles == {"a": ["user", "assistant", "user"], "b": ["user"], "c": ["user", "assistant"]}


@pytest.mark.parametrize(
    ("rows", "fields", "sentence"),
    [
        ([{"instruction": 7}], {}, r"Row 1 of .* has the turns \[7\], expected one text or more"),
        ([ALPACA, ALPACA], {}, "occurs twice"),
        ([{**BENCH, "difficulty": "hard"}], {}, "difficulty='hard', expected a number"),
        ([ALPACA], {"max_tokens": 0}, "max_tokens=0"),
        ([ALPACA], {"stop": ("",)}, r"stop=\('',\), expected a tuple of texts, none of them empty"),
        ([ALPACA], {"stop": "END"}, "stop='END', expected a tuple of texts"),
        ([ALPACA], {"max_tokens": 4090}, "None of the 1 instructions fits in the window of 4096"),
    ],
)
def test_bad_input_is_a_sentence(
    write: Write, rule: Rule, judge_path: str, tmp_path: Path, rows: Any, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(JudgeError, match=sentence):
        answered(write("rows", rows), judge_path, rule("count")[0], tmp_path / "output", **fields)


def test_a_model_without_a_chat_template_is_a_sentence(write: Write, rule: Rule, tmp_path: Path) -> None:
    model = write_judge_folder(tmp_path / "plain", chat_template=None)
    with pytest.raises(JudgeError, match="The tokenizer of the model has no chat template"):
        answered(write("rows", [ALPACA]), model, rule("count")[0], tmp_path / "output")
