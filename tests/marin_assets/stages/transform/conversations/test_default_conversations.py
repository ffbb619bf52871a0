"""The steps of conversations, and a recipe that is computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sum_chats import chat_of

from marin_assets.datasets import chats, preferences
from marin_assets.defaults import (
    default_conversations,
    default_download,
    default_preferences,
    default_threads,
)
from marin_assets.documents.chats.forms import Columns
from marin_assets.stages.transform.conversations.conversations import ConversationsConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import resolve
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError


def compute(step: Step, prefix: Path) -> dict[str, dict[str, Any]]:
    """Call the functions of the step and of its inputs, in turn. Returns their results by name."""
    graph = build_graph([step])
    results = {}
    for node in graph:
        config = resolve(node, graph, lambda output: f"{prefix}/{output.relative()}", str(prefix))
        results[node.name] = node.step.fn(config)
    return results


def read_own(row: dict[str, Any]) -> Any:
    return chat_of(row["a"], row["b"])


def version(step: Step) -> str:
    return str(build_graph([step])[step].version.hash)


def test_lists_of_rows_become_conversations_and_tokens(tmp_path: Path) -> None:
    rows = [{"instruction": f"Double {i}.", "output": f"<think></think>{2 * i}", "lang": "en"} for i in range(40)]
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/alpaca.json").write_text(json.dumps(rows + rows[:10]))
    raw = default_download("doubles", f"{tmp_path}/rows")
    conversations = default_conversations(
        "doubles",
        raw,
        adapter="alpaca",
        are_json_lists=True,
        replacements={"<think></think>": ""},
        metadata_columns=("lang",),
    )
    results = compute(conversations, tmp_path / "prefix")
    result = results["conversations/doubles"]
    assert (result["records"], result["conversations"], result["rejected_duplicate"]) == (50, 40, 10)
    assert list(results) == ["raw/doubles", "rows/doubles", "conversations/doubles"]


def test_a_shape_and_a_function_of_ones_own_enter_the_version() -> None:
    raw = default_download("x", "/data")
    steps = [
        default_conversations("x", raw),
        default_conversations("x", raw, adapter=Columns(prompt=("q",), answer="a")),
        default_conversations("x", raw, adapter=Columns(prompt=("q",), answer="b")),
        default_conversations("x", raw, adapter=read_own),
        default_conversations("x", raw, end="cut"),
    ]
    assert len({version(step) for step in steps}) == 5
    config = steps[3].config
    assert isinstance(config, ConversationsConfig)
    assert config.adapter.value == f"{__name__}:read_own"  # type: ignore[union-attr]


def test_a_known_data_set_has_its_adapter_and_name() -> None:
    tulu = chats["teknium/OpenHermes-2.5"]
    alone, named = default_conversations(tulu), default_conversations("hermes", tulu)
    assert (alone.name, named.name) == ("conversations/teknium/OpenHermes-2.5", "conversations/hermes")
    assert alone.config.adapter.value == named.config.adapter.value == "sharegpt"
    assert version(tulu.conversations()) == version(alone)


@pytest.mark.parametrize(
    ("arguments", "fields", "sentence"),
    [
        (("x", "rows"), {}, "default_conversations got dataset='rows', expected a step, or a data set"),
        (("x",), {}, "default_conversations got dataset=None, expected a step, or a data set"),
        ((7,), {}, "default_conversations got name=7, expected a text"),
        (("x", default_download("x", "/d")), {"replacement": {}}, "no field 'replacement', .*'replacements'"),
        (("x", default_download("x", "/d")), {"adapter": "opnai"}, "adapter is 'opnai', expected one of"),
    ],
)
def test_a_mistake_is_a_sentence(arguments: tuple[Any, ...], fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as error:
        default_conversations(*arguments, **fields)
    assert isinstance(error.value, ConfigError) or "adapter" in fields


def test_messages_of_trees_become_conversations_and_pairs_preferences(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for tree in range(6):
        ids = {"message_tree_id": str(tree), "lang": ("en", "de")[tree % 2]}
        rows += [
            {**ids, "message_id": f"{tree}q", "parent_id": None, "role": "prompter", "text": f"{tree}?"},
            {**ids, "message_id": f"{tree}a", "parent_id": f"{tree}q", "role": "assistant", "text": "a", "rank": 1},
            {**ids, "message_id": f"{tree}b", "parent_id": f"{tree}q", "role": "assistant", "text": "b", "rank": 0},
        ]
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    threads = default_threads("trees", default_download("trees", f"{tmp_path}/rows"), languages=("de",), partitions=2)
    results = compute(default_conversations("trees", threads, id_column="id"), tmp_path / "prefix")
    assert results["rows/trees"]["threads"] == results["conversations/trees"]["conversations"] == 3
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs/a.jsonl").write_text(json.dumps({"prompt": "1?", "chosen": "a", "rejected": "b"}) + "\n")
    pairs = default_preferences("pairs", default_download("pairs", f"{tmp_path}/pairs"), adapter="answers")
    assert compute(pairs, tmp_path / "prefix")["preferences/pairs"]["preferences"] == 1


def test_a_known_set_of_preferences_is_the_only_argument() -> None:
    known = preferences["Anthropic/hh-rlhf/helpful-base/train"]
    assert version(default_preferences(known)) == version(known.preferences())
    assert default_preferences(known).name == "preferences/Anthropic/hh-rlhf/helpful-base/train"
    with pytest.raises(ConfigError, match=r"default_preferences got dataset=None, .* preferences\['…'\]"):
        default_preferences("x")
