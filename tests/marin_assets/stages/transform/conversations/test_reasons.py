"""Each row that is no conversation is counted by its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from converted import LENIENT, converted, reasons
from sum_chats import chat_of

from marin_assets.stages.transform.conversations.conversations import ConversationsConfig

CHAT = chat_of("1 + 1?", "2")
USER, ASSISTANT = ({"role": role, "content": role} for role in ("user", "assistant"))
SYSTEM = {"role": "system", "content": "Be brief."}


def nested(levels: int) -> Any:
    """An object of so many levels."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def calling(**call: Any) -> dict[str, Any]:
    return {"messages": [USER, {"role": "assistant", "content": "", **call}]}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"messages": []}, "no_messages"),
        ({"messages": None}, "no_messages"),
        ({"messages": "hi"}, "no_messages"),
        ({"messages": [{"role": "narrator", "content": "x"}, ASSISTANT]}, "unknown_role"),
        ({"messages": [{"role": None, "content": "x"}, ASSISTANT]}, "unknown_role"),
        ({"messages": [["user", "x"], ASSISTANT]}, "unknown_role"),
        ({"messages": [{"role": "user", "content": 7}, ASSISTANT]}, "not_text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, ASSISTANT]}, "not_text"),
        ({"messages": [{"role": "user", "content": None}, ASSISTANT]}, "empty_message"),
        ({"messages": [USER, {"role": "assistant", "content": " \n"}]}, "empty_message"),
        ({"messages": [SYSTEM]}, "only_system"),
        ({"messages": [USER]}, "no_assistant"),
        ({"messages": [USER, {**ASSISTANT, "weight": 0}]}, "nothing_to_learn"),
        ({"messages": [USER, {**ASSISTANT, "weight": 3}]}, "unknown_weight"),
        ({"messages": [*CHAT, USER]}, "no_answer_at_the_end"),
        ({"messages": [ASSISTANT, *CHAT]}, "not_alternating"),
        ({"messages": [USER, *CHAT]}, "not_alternating"),
        ({"messages": [*CHAT, SYSTEM, *CHAT]}, "not_alternating"),
        ({"messages": [SYSTEM, ASSISTANT]}, "not_alternating"),
        ({"messages": [SYSTEM, *CHAT], "system": "Be long."}, "two_systems"),
        (calling(tool_calls=[{"function": {"name": "f", "arguments": "{"}}]), "bad_tool_call"),
        (calling(tool_calls=[{"function": {"name": "f", "arguments": "[1]"}}]), "bad_tool_call"),
        (calling(tool_calls=[{"function": {"arguments": "{}"}}]), "bad_tool_call"),
        (calling(tool_calls="f()"), "bad_tool_call"),
        (calling(function_call={"name": "f", "arguments": '{"x": NaN}'}), "bad_tool_call"),
        ({"messages": [{**USER, "tool_calls": [{"name": "f"}]}, ASSISTANT]}, "bad_tool_call"),
        (calling(function_call={"name": "f", "arguments": nested(65)}), "bad_tool_call"),
        (calling(function_call={"name": "f", "arguments": json.dumps(nested(65))}), "bad_tool_call"),
        ({"messages": CHAT, "note": nested(65)}, "bad_metadata"),
        ({"messages": CHAT, "tools": "{"}, "bad_tools"),
        ({"messages": CHAT, "tools": [{"parameters": {}}]}, "bad_tools"),
        ({"messages": CHAT, "tools": 7}, "bad_tools"),
        ("[1]", "not_an_object"),
        ('{"messages": ', "invalid_json"),
        ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "invalid_utf8"),
        ('{"messages": ' + "[" * 100_000, "invalid_json"),
    ],
)
def test_a_row_that_is_no_conversation_has_a_reason(row: Any, reason: str, tmp_path: Path) -> None:
    result, documents = converted(
        ConversationsConfig, tmp_path, [row, {"messages": CHAT}], metadata_columns=("note",), **LENIENT
    )
    assert reasons(result) == {reason: 1}
    assert [document["messages"] for document in documents] == [CHAT]
    assert (result["records"], result["conversations"], result["rejected"]) == (2, 1, 1)


@pytest.mark.parametrize("reason", ["unknown_weight", "two_systems", "no_id", "duplicate", "invalid_unicode"])
def test_a_reason_without_a_row_is_counted_as_zero(reason: str, tmp_path: Path) -> None:
    result, _ = converted(ConversationsConfig, tmp_path, [{"messages": CHAT}])
    assert result[f"rejected_{reason}"] == 0


@pytest.mark.parametrize(
    ("turns", "changes", "kept"),
    [
        ([USER, USER, ASSISTANT], {"alternation": "merge"}, chat_of("user\n\nuser", "assistant")),
        ([USER, USER, ASSISTANT], {"alternation": "keep"}, [USER, USER, ASSISTANT]),
        ([USER, ASSISTANT, ASSISTANT], {"alternation": "merge"}, chat_of("user", "assistant\n\nassistant")),
        ([USER, ASSISTANT, USER, USER], {"end": "cut"}, [USER, ASSISTANT]),
        ([USER, ASSISTANT, USER], {"end": "keep"}, [USER, ASSISTANT, USER]),
        ([{**SYSTEM, "content": ""}, USER, ASSISTANT], {}, [USER, ASSISTANT]),
        ([{"role": "prompter", "content": "user"}, {"role": "MODEL", "content": "assistant"}], {}, [USER, ASSISTANT]),
        (
            [{"role": "alice", "content": "user"}, {"role": "Bob", "content": "assistant"}],
            {"roles": {"Alice": "user", "bob": "assistant"}},
            [USER, ASSISTANT],
        ),
    ],
)
def test_what_a_field_changes(turns: list[Any], changes: dict[str, Any], kept: list[Any], tmp_path: Path) -> None:
    _, [document] = converted(ConversationsConfig, tmp_path, [{"messages": turns}], **changes)
    assert document["messages"] == kept


def test_an_answer_that_is_not_learnt_is_not_merged_with_one_that_is(tmp_path: Path) -> None:
    turns = [USER, {**ASSISTANT, "weight": 0}, ASSISTANT]
    result, _ = converted(ConversationsConfig, tmp_path, [{"messages": turns}, {"messages": CHAT}], alternation="merge")
    assert reasons(result) == {"not_alternating": 1}


def test_a_replacement_that_leaves_nothing_of_a_message_rejects_the_row(tmp_path: Path) -> None:
    rows = [{"messages": chat_of("a", "<think></think>")}, {"messages": CHAT}]
    result, _ = converted(ConversationsConfig, tmp_path, rows, replacements={"<think></think>": ""})
    assert reasons(result) == {"empty_message": 1}


def broken(row: dict[str, Any]) -> Any:
    return chat_of(row["text"], "\ud800")


def test_half_of_a_surrogate_pair_of_a_function_is_a_reason(tmp_path: Path) -> None:
    from marin_assets.stages.transform.conversations.fields import ConversationError

    with pytest.raises(ConversationError, match=r"1 invalid_unicode\)"):
        converted(ConversationsConfig, tmp_path, [{"text": "x"}], adapter=f"{__name__}:broken")


def test_a_conversation_of_a_hundred_thousand_messages_is_one(tmp_path: Path) -> None:
    turns = chat_of(*(str(i) for i in range(100_000)))
    _, [document] = converted(ConversationsConfig, tmp_path, [{"messages": turns}])
    assert document["messages"] == turns
