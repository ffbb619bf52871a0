"""Rows of the shapes of known sets are chats; a row that is none has a reason."""

from __future__ import annotations

from typing import Any

import pytest

from marin_assets.documents.chats.adapters import ADAPTERS
from marin_assets.documents.chats.forms import PAIRS
from marin_assets.documents.chats.not_a_chat import NotAChat

CHAT = [{"role": "user", "content": "Two and two?"}, {"role": "assistant", "content": "Four."}]
QUESTION = {"question": "Two and two?"}


@pytest.mark.parametrize(
    ("adapter", "row"),
    [
        *((f"{prompt}/{answer}", {prompt: "Two and two?", answer: "Four."}) for prompt, answer in PAIRS),
        (
            "question/inferences",
            {**QUESTION, "inferences": [
                {"completion": "Five.", "pass_rate": 0.2},
                {"completion": "Four.", "pass_rate": 1.0},
                {"completion": "4", "pass_rate": 1.0},
            ]},
        ),
        ("question/responses", {**QUESTION, "responses": [{"response": "Four."}, {"response": "Five."}]}),
        ("messages/answer", {"messages": CHAT[:1], "answer": "Four."}),
        (
            "conversations",
            {"conversations": [{"from": "user", "value": "Two and two?"}, {"from": "assistant", "value": "Four."}]},
        ),
    ],
)  # fmt: skip
def test_a_row_of_the_shape_is_a_chat(adapter: str, row: dict[str, Any]) -> None:
    assert ADAPTERS[adapter].read(row) == CHAT
    assert ADAPTERS[adapter].unread(row) == set()
    assert ADAPTERS[adapter].read({**row, "system": "Be brief."})[0] == {"role": "system", "content": "Be brief."}
    assert ADAPTERS[adapter].unread({**row, "source": "made"}) == {"source"}


@pytest.mark.parametrize(
    ("adapter", "row", "reason"),
    [
        ("query/response", {"query": "Two and two?"}, "empty_message"),
        ("query/response", {"query": "Two and two?", "response": 4}, "not_text"),
        ("question/inferences", {**QUESTION, "inferences": []}, "empty_message"),
        ("question/inferences", {**QUESTION, "inferences": "Four."}, "not_text"),
        ("question/inferences", {**QUESTION, "inferences": [{"completion": "Four."}]}, "empty_message"),
        ("question/responses", {**QUESTION, "responses": [4]}, "not_text"),
        ("messages/answer", {"messages": "Two and two?", "answer": "Four."}, "no_messages"),
        ("conversations", {"conversations": [{"from": "gpt", "value": "Four."}]}, "unknown_role"),
    ],
)
def test_another_row_has_a_reason(adapter: str, row: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotAChat) as error:
        ADAPTERS[adapter].read(row)
    assert error.value.reason == reason
