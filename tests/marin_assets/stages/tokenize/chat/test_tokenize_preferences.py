from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sum_chats import chat_of, preferences, write_lines

from marin_assets.stages.tokenize.cache import read_documents_of
from marin_assets.stages.tokenize.chat.templates import TEMPLATES
from marin_assets.stages.tokenize.chat.tokenize_preferences import TokenizePreferencesConfig, tokenize_preferences
from marin_assets.step.values import unwrap_versioned_value


def make(rows: Path, tokenizer: str, output: Path, **changes: Any) -> dict[str, Any]:
    config = {"chat_template": TEMPLATES["plain"], "max_seq_len": 64, "validation_fraction": 0, **changes}
    return tokenize_preferences(
        unwrap_versioned_value(
            TokenizePreferencesConfig(
                preferences_path=str(rows), tokenizer_path=tokenizer, output_path=str(output), **config
            )
        )
    )


def learnt(path: str, side: str, tokenizer: str) -> list[str]:
    from tokenizers import Tokenizer

    read = Tokenizer.from_file(f"{tokenizer}/tokenizer.json")
    fields = [read_documents_of(path, range(2), f"{side}_{name}") for name in ("input_ids", "assistant_masks")]
    masked = [[i for i, m in zip(ids, mask, strict=True) if m] for ids, mask in zip(*fields, strict=True)]
    return [read.decode(ids, skip_special_tokens=False) for ids in masked]


def test_both_sides_are_masked_to_their_answers(tokenizer_path: str, tmp_path: Path) -> None:
    rows = preferences(20)
    result = make(write_lines(tmp_path / "r/a.jsonl", rows), tokenizer_path, tmp_path / "out")
    assert (result["kept"], result["rejected"], result["token_mismatches"], result["prompt_mismatches"]) == (
        20,
        0,
        0,
        0,
    )
    for side in ("chosen", "rejected"):
        assert learnt(f"{tmp_path}/out/train/00000", side, tokenizer_path) == [
            f" {row[side][-1]['content']}<|eos|>" for row in rows[:2]
        ]


def test_a_question_and_two_answers_are_the_same_pairs(tokenizer_path: str, tmp_path: Path) -> None:
    rows = preferences(20)
    texts = [
        {
            "id": row["id"],
            "prompt": row["chosen"][0]["content"],
            "chosen": row["chosen"][1]["content"],
            "rejected": row["rejected"][1]["content"],
        }
        for row in rows
    ]
    make(write_lines(tmp_path / "a/a.jsonl", rows), tokenizer_path, tmp_path / "chats")
    make(write_lines(tmp_path / "b/a.jsonl", texts), tokenizer_path, tmp_path / "answers", adapter="answers")
    made = [
        {file.name: file.read_bytes() for file in (tmp_path / out / "train/00000").rglob("*") if file.is_file()}
        for out in ("chats", "answers")
    ]
    assert made[0] == made[1]


def test_pairs_that_cannot_be_compared_are_counted_by_reason(tokenizer_path: str, tmp_path: Path) -> None:
    right, wrong = chat_of("1 + 1", "2"), chat_of("1 + 1", "3")
    rows = [
        {"chosen": right, "rejected": wrong},
        {"chosen": right, "rejected": right},
        {"chosen": right, "rejected": chat_of("2 + 2", "3")},
        {"chosen": right, "rejected": []},
        {"chosen": right, "rejected": chat_of("1 + 1", "three " * 60)},
        {"chosen": [*right, {"role": "user", "content": "really?"}], "rejected": wrong},
        {"chosen": [*right, *chat_of("and"), {**right[1], "weight": 0}], "rejected": [*right, *chat_of("and", "x")]},
    ]
    result = make(write_lines(tmp_path / "r/a.jsonl", rows), tokenizer_path, tmp_path / "out")
    reasons = {name.removeprefix("rejected_"): n for name, n in result.items() if name.startswith("rejected_")}
    assert reasons == dict.fromkeys(
        ("equal_answers", "different_prompts", "no_messages", "too_long", "no_answer_at_the_end", "nothing_to_learn"), 1
    )
    assert (result["kept"], result["cut"], result["rows_unaccounted"]) == (1, 0, 0)


def test_the_system_field_of_a_pair_is_read_and_its_other_keys_are_counted(tokenizer_path: str, tmp_path: Path) -> None:
    """As Orca's pairs have it."""
    answers = {"system": "Be brief.", "prompt": "1 + 1", "chosen": "2", "rejected": "3", "score": 9}
    system = {"role": "system", "content": "Be brief."}
    pair = {"chosen": [system, *chat_of("1 + 1", "2")], "rejected": [system, *chat_of("1 + 1", "3")]}
    one = make(write_lines(tmp_path / "a/a.jsonl", [answers]), tokenizer_path, tmp_path / "1", adapter="answers")
    two = make(write_lines(tmp_path / "b/a.jsonl", [pair]), tokenizer_path, tmp_path / "2")
    assert one.pop("unread_score") == 1
    assert one == two


@pytest.mark.long
def test_the_rows_are_those_of_levanter(tokenizer_path: str, tmp_path: Path) -> None:
    from levanter.data.text import PreferenceChatLmDatasetFormat
    from levanter.tokenizers import load_tokenizer

    rows = preferences(50)
    make(write_lines(tmp_path / "r/a.jsonl", rows), tokenizer_path, tmp_path / "out")
    template = TEMPLATES["plain"]
    theirs = PreferenceChatLmDatasetFormat(chat_template=template).build_preprocessor(load_tokenizer(tokenizer_path))(
        rows
    )
    for name in theirs[0]:
        ours = read_documents_of(f"{tmp_path}/out/train/00000", range(50), name)
        assert [row.tolist() for row in ours] == [row[name].tolist() for row in theirs]  # type: ignore[literal-required]
