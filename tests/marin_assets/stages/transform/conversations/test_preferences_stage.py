"""Rows of preferences of every shape become pairs of conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from converted import LENIENT, convert, converted, reasons, write
from sum_chats import chat_of

from marin_assets.documents.chats.preferences import Pairs
from marin_assets.stages.transform.conversations.fields import ConversationError
from marin_assets.stages.transform.conversations.preferences import PreferencesConfig

RIGHT, WRONG = chat_of("1 + 1?", "2"), chat_of("1 + 1?", "3")
HUMAN = "\n\nHuman: 1 + 1?\n\nAssistant: "
LONG = [*chat_of("Hi.", "Hello."), *RIGHT]


@pytest.mark.parametrize(
    ("adapter", "row"),
    [
        ("chats", {"chosen": RIGHT, "rejected": WRONG}),
        ("chats", {"prompt": "1 + 1?", "chosen": RIGHT, "rejected": WRONG}),
        ("answers", {"prompt": "1 + 1?", "chosen": "2", "rejected": "3"}),
        ("answers", {"prompt": RIGHT[:1], "chosen": RIGHT[1:], "rejected": WRONG[1:]}),
        ("answers", {"prompt": "1 + 1?", "chosen": RIGHT, "rejected": WRONG}),
        ("transcripts", {"chosen": f"{HUMAN}2", "rejected": f"{HUMAN}3"}),
        (Pairs(prompt="q", chosen="better", rejected="worse"), {"q": "1 + 1?", "better": "2", "worse": "3"}),
        (f"{__name__}:scored", {"q": "1 + 1?", "a": ["3", "2"], "best": 1}),
    ],
)  # fmt: skip
def test_a_row_of_the_shape_is_the_pair(adapter: Any, row: dict[str, Any], tmp_path: Path) -> None:
    result, [document] = converted(PreferencesConfig, tmp_path, [row], adapter=adapter, source="sums")
    assert (document["chosen"], document["rejected"]) == (RIGHT, WRONG)
    assert list(document) == ["id", "chosen", "rejected", "source", "metadata"]
    assert (result["records"], result["preferences"], result["records_unaccounted"]) == (1, 1, 0)


def scored(row: dict[str, Any]) -> Any:
    chosen, rejected = row["a"][row["best"]], row["a"][1 - row["best"]]
    return {"chosen": chat_of(row["q"], chosen), "rejected": chat_of(row["q"], rejected)}


def unfinished(row: dict[str, Any]) -> Any:
    return {"chosen": chat_of("a", "b")}


def test_a_transcript_has_many_turns_and_the_same_ones_before_the_last(tmp_path: Path) -> None:
    start = "\n\nHuman: Hi.\n\nAssistant: Hello.\n\nHuman: 1 + 1?"
    rows = [
        {"chosen": f"{start}\n\nAssistant: 2", "rejected": f"{start}\n\nAssistant: 3 is\n\nright."},
        {"chosen": f"{start}\n\nAssistant: 2", "rejected": "\n\nHuman: Hi.\n\nAssistant: Ho."},
        {"chosen": f"{start}\n\nAssistant: 2", "rejected": f"{start}"},
        {"chosen": "2", "rejected": "3"},
        {"chosen": f"{start}\n\nAssistant:", "rejected": f"{start}\n\nAssistant: 3"},
    ]
    result, [document] = converted(PreferencesConfig, tmp_path, rows, adapter="transcripts", **LENIENT)
    assert document["chosen"] == LONG
    assert document["rejected"][-1]["content"] == "3 is\n\nright."
    assert reasons(result) == dict.fromkeys(
        ("different_prompts", "no_answer_at_the_end", "no_messages", "empty_message"), 1
    )


def test_pairs_that_cannot_be_compared_have_a_reason(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"chosen": RIGHT, "rejected": WRONG},
        {"chosen": RIGHT, "rejected": WRONG, "n": 1},
        {"chosen": WRONG, "rejected": RIGHT},
        {"chosen": RIGHT, "rejected": RIGHT},
        {"chosen": RIGHT, "rejected": chat_of("2 + 2?", "3")},
        {"chosen": RIGHT, "rejected": None},
        {"chosen": [*RIGHT, RIGHT[0]], "rejected": WRONG},
        {"chosen": [RIGHT[1]], "rejected": [WRONG[1]]},
    ]
    result, documents = converted(PreferencesConfig, tmp_path, rows, **LENIENT)
    assert len(documents) == 2
    assert reasons(result) == dict.fromkeys(
        ("duplicate", "equal_answers", "different_prompts", "no_messages", "no_answer_at_the_end", "not_alternating"), 1
    )


def test_a_function_that_returns_no_pair_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"unfinished' returned .* expected \{'chosen': \[messages\], 'rejected'"):
        converted(PreferencesConfig, tmp_path, [{"x": 1}], adapter=f"{__name__}:unfinished")


def test_pairs_in_several_files_count_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"rows/{name}.jsonl", [{"chosen": RIGHT, "rejected": WRONG}])
    result, documents = convert(PreferencesConfig, tmp_path)
    assert (len(documents), reasons(result)) == (1, {"duplicate": 1})


def test_an_adapter_of_chats_is_none_of_preferences(tmp_path: Path) -> None:
    with pytest.raises(
        ConversationError, match=r"adapter is 'openai', expected one of 'chats', 'answers', 'transcripts'"
    ):
        converted(PreferencesConfig, tmp_path, [{"chosen": RIGHT, "rejected": WRONG}], adapter="openai")
