"""From rows to tokens: what `conversations` and `preferences` write is what training reads, without an adapter."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from converted import converted
from sum_chats import chat_of

from marin_assets.documents import Document, write_documents
from marin_assets.stages.tokenize.cache import read_documents_of, read_names
from marin_assets.stages.tokenize.chat.templates import TEMPLATES
from marin_assets.stages.tokenize.chat.tokenize_chats import TokenizeChatsConfig, tokenize_chats
from marin_assets.stages.tokenize.chat.tokenize_preferences import TokenizePreferencesConfig, tokenize_preferences
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.stages.transform.conversations.conversations import ConversationsConfig
from marin_assets.stages.transform.conversations.preferences import PreferencesConfig
from marin_assets.step.values import unwrap_versioned_value

Row = dict[str, Any]
DEFINITION = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
WITH_TOOLS: Row = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rain in Zürich?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": '{"city": "Zürich"}'}}],
        },
        {"role": "tool", "content": '{"rain": true}'},
        {"role": "assistant", "content": "Yes."},
    ],
    "tools": [{"type": "function", "function": DEFINITION}],
}


@pytest.fixture(scope="module")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_documents(str(folder / "d/a.jsonl.zst"), [Document(id=n, text=t) for n, t in sorted(topics.items())])
    config = TrainTokenizerConfig(documents_path=f"{folder}/d", output_path=f"{folder}/t", vocab_size=600)
    train_tokenizer(unwrap_versioned_value(config))
    return f"{folder}/t"


def tokenized(kind: Any, path: Path, tokenizer: str, **changes: Any) -> Row:
    """Tokenize the output of a conversion, with the stage's own adapter."""
    function, rows = {
        TokenizeChatsConfig: (tokenize_chats, "chats_path"),
        TokenizePreferencesConfig: (tokenize_preferences, "preferences_path"),
    }[kind]
    fields = {"chat_template": TEMPLATES["plain"], "max_seq_len": 512, "validation_fraction": 0, **changes}
    fields |= {rows: f"{path}/out", "tokenizer_path": tokenizer, "output_path": f"{path}/tokens"}
    result: Row = function(unwrap_versioned_value(kind(**fields)))
    return result


def parts(path: Path, tokenizer: str, side: str = "") -> list[list[tuple[str, int]]]:
    """Of each row, its parts with whether they are learnt."""
    from tokenizers import Tokenizer

    read = Tokenizer.from_file(f"{tokenizer}/tokenizer.json")
    [names] = read_names(f"{path}/tokens/train", ["00000"])
    fields = [
        read_documents_of(f"{path}/tokens/train/00000", range(len(names.ids)), f"{side}{name}")
        for name in ("input_ids", "assistant_masks")
    ]
    return [
        [
            (read.decode([i for i, _ in run], skip_special_tokens=False), int(learnt))
            for learnt, run in groupby(zip(ids.tolist(), mask.tolist(), strict=True), lambda pair: pair[1])
        ]
        for ids, mask in zip(*fields, strict=True)
    ]


def test_the_answers_of_every_shape_are_learnt_and_nothing_else(tokenizer_path: str, tmp_path: Path) -> None:
    shapes: dict[str, Row] = {
        "alpaca": {"instruction": "Add.", "input": "2 and 2", "output": "4"},
        "sharegpt": {"conversations": [{"from": "Human", "value": "Add.\n\n2 and 2"}, {"from": "GPT", "value": "4"}]},
        "openai": {"messages": chat_of("Add.\n\n2 and 2", "4")},
    }
    for adapter, row in shapes.items():
        folder = tmp_path / adapter
        converted(ConversationsConfig, folder, [{"system": "Be brief.", **row}], adapter=adapter)
        result = tokenized(TokenizeChatsConfig, folder, tokenizer_path)
        assert (result["kept"], result["rejected"], result["prompt_mismatches"]) == (1, 0, 0)
        assert parts(folder, tokenizer_path) == [
            [
                ("<|bos|>System: Be brief.\nUser: Add.\n\n2 and 2\nAssistant:", 0),
                (" 4<|eos|>", 1),
                ("\n", 0),
            ]
        ]


def test_calls_of_tools_are_learnt_and_their_results_are_read(tokenizer_path: str, tmp_path: Path) -> None:
    converted(ConversationsConfig, tmp_path, [WITH_TOOLS])
    result = tokenized(TokenizeChatsConfig, tmp_path, tokenizer_path, chat_template=TEMPLATES["plain_tools"])
    assert (result["kept"], result["rejected"]) == (1, 0)
    assert (result["token_mismatches"], result["prompt_mismatches"]) == (0, 0)
    assert "unread_tools" not in result
    definition = '{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}'
    assert parts(tmp_path, tokenizer_path) == [
        [
            (f"<|bos|>Tools: [{definition}]\nSystem: Be brief.\nUser: Rain in Zürich?\nAssistant:", 0),
            (' <tool_call>{"name": "weather", "arguments": {"city": "Zürich"}}</tool_call><|eos|>', 1),
            ('\nTool: {"rain": true}\nAssistant:', 0),
            (" Yes.<|eos|>", 1),
            ("\n", 0),
        ]
    ]


def test_a_template_without_tools_rejects_them_as_before(tokenizer_path: str, tmp_path: Path) -> None:
    plain = {"messages": chat_of("a", "b"), "tools": WITH_TOOLS["tools"]}
    converted(ConversationsConfig, tmp_path, [WITH_TOOLS, plain])
    result = tokenized(TokenizeChatsConfig, tmp_path, tokenizer_path)
    assert (result["kept"], result["rejected_tool_calls"], result["unread_tools"]) == (1, 1, 1)


def test_a_special_token_within_a_call_is_refused(tokenizer_path: str, tmp_path: Path) -> None:
    call = {"name": "weather", "arguments": {"city": "<|eos|>"}}
    messages = [*chat_of("a"), {"role": "assistant", "content": "x", "function_call": call}]
    converted(ConversationsConfig, tmp_path, [{"messages": messages}, {"messages": chat_of("a", "b")}])
    result = tokenized(TokenizeChatsConfig, tmp_path, tokenizer_path, chat_template=TEMPLATES["plain_tools"])
    assert (result["kept"], result["rejected_special_token"]) == (1, 1)


def test_a_template_that_renders_calls_outside_of_the_answer_gets_none(
    tokenizer_path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    template = TEMPLATES["plain_tools"].replace("{% generation %}", "", 1)
    template = template.replace("{{ eos_token }}{% endgen", "{% generation %}{{ eos_token }}{% endgen")
    converted(ConversationsConfig, tmp_path, [WITH_TOOLS, {"messages": chat_of("a", "b")}])
    result = tokenized(TokenizeChatsConfig, tmp_path, tokenizer_path, chat_template=template)
    assert result["rejected_tool_calls"] == 1
    assert "does not render calls within {% generation %}" in caplog.text


def test_preferences_become_pairs_of_tokens(tokenizer_path: str, tmp_path: Path) -> None:
    start = "\n\nHuman: Hi.\n\nAssistant: Hello.\n\nHuman: 1 + 1?\n\nAssistant: "
    converted(PreferencesConfig, tmp_path, [{"chosen": f"{start}2", "rejected": f"{start}3"}], adapter="transcripts")
    result = tokenized(TokenizePreferencesConfig, tmp_path, tokenizer_path)
    assert (result["kept"], result["rejected"], result["prompt_mismatches"]) == (1, 0, 0)
    for side, answer in (("chosen", "2"), ("rejected", "3")):
        [row] = parts(tmp_path, tokenizer_path, f"{side}_")
        assert "".join(text for text, _ in row) == (
            f"<|bos|>User: Hi.\nAssistant: Hello.<|eos|>\nUser: 1 + 1?\nAssistant: {answer}<|eos|>\n"
        )
        assert [text for text, learnt in row if learnt] == [" Hello.<|eos|>", f" {answer}<|eos|>"]


def test_a_conversation_of_many_turns_is_tokenized(tokenizer_path: str, tmp_path: Path) -> None:
    converted(ConversationsConfig, tmp_path, [{"messages": chat_of(*(str(i % 10) for i in range(20_000)))}])
    result = tokenized(TokenizeChatsConfig, tmp_path, tokenizer_path, max_seq_len=1_000_000)
    assert (result["kept"], result["cut"], result["prompt_mismatches"]) == (1, 0, 0)
