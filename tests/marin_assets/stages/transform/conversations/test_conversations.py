"""Rows of every shape become the same conversations, in the form that training reads."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from converted import contents, convert, converted, reading, reasons, write
from sum_chats import chat_of

from marin_assets.documents.chats.forms import BestAnswer, Columns, Turns
from marin_assets.stages.transform.conversations.conversations import ConversationsConfig
from marin_assets.stages.transform.conversations.fields import ConversationError
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, versioned
from marin_resources.ray_tpu.shards.map_shards import ShardError

CHAT = chat_of("Two and two?", "Four.")
BRIEF = {"role": "system", "content": "Be brief."}
LONG = [{"from": "human", "value": "Two and two?"}, {"from": "gpt", "value": "Four."}]


@pytest.mark.parametrize(
    ("adapter", "row"),
    [
        ("openai", {"messages": CHAT}),
        ("openai", {"messages": [{"role": "User", "content": [{"type": "text", "text": "Two and two?"}]}, CHAT[1]]}),
        ("sharegpt", {"conversations": LONG}),
        ("alpaca", {"instruction": "Two and two?", "input": "", "output": "Four."}),
        ("alpaca", {"instruction": "Two and two?", "output": "Four."}),
        ("dolly", {"instruction": "Two and two?", "context": None, "response": "Four."}),
        ("prompt/completion", {"prompt": "Two and two?", "completion": "Four."}),
        ("prompt/completion", {"prompt": CHAT[:1], "completion": CHAT[1:]}),
        ("messages/answer", {"messages": CHAT[:1], "answer": "Four."}),
        (Turns(column="dialog", role="who", content="said", roles={"q": "user"}), {"dialog": [
            {"who": "human", "said": "Two and two?"}, {"who": "bot", "said": "Four."},
        ]}),
        (Columns(prompt=("q",), answer="a"), {"q": "Two and two?", "a": "Four."}),
        (BestAnswer(text="body", best_by="score"), {"question": "Two and two?", "answers": [
            {"body": "Three.", "score": 1}, {"body": "Four.", "score": 7}, {"body": "4", "score": 7},
            {"body": "Five.", "score": None}, {"body": "Six.", "score": float("nan")},
        ]}),
        (BestAnswer(text="text", best_by="score"), {"question": "Two and two?", "answers": {
            "text": ["Three.", "Four."], "score": [1, 2],
        }}),
        (BestAnswer(), {"question": "Two and two?", "answers": ["Four.", "Five."]}),
        (f"{__name__}:swapped", {"a": "Four.", "q": "Two and two?"}),
    ],
)  # fmt: skip
def test_a_row_of_the_shape_is_the_conversation(adapter: Any, row: dict[str, Any], tmp_path: Path) -> None:
    rows = [row, {**row, "system": "Be brief."}]
    result, documents = converted(ConversationsConfig, tmp_path, rows, adapter=adapter, source="sums")
    own = isinstance(adapter, str) and ":" in adapter
    assert [document["messages"] for document in documents] == [CHAT, [BRIEF, *CHAT]][: 1 if own else 2]
    assert documents[0] == {**documents[0], "source": "sums", "metadata": {}}
    assert list(documents[0]) == ["id", "messages", "source", "metadata"]
    assert result["records"] == result["conversations"] + result["rejected"] == 2
    assert result["records_unaccounted"] == 0


def swapped(row: dict[str, Any]) -> Any:
    """A function of a row."""
    return [{"role": "user", "content": row["q"]}, {"role": "assistant", "content": row["a"]}] if row["q"] else None


def test_a_function_leaves_out_rows_and_its_fault_names_the_row(tmp_path: Path) -> None:
    adapter = f"{__name__}:swapped"
    result, _ = converted(ConversationsConfig, tmp_path, [{"q": "1", "a": "2"}, {"q": "", "a": "2"}], adapter=adapter)
    assert reasons(result) == {"left_out": 1}
    with pytest.raises(ShardError, match=r"swapped' failed with KeyError: 'q', for the row \{'a': '2'\}"):
        converted(ConversationsConfig, tmp_path / "2", [{"a": "2"}], adapter=adapter)


def test_the_input_of_an_instruction_follows_it(tmp_path: Path) -> None:
    row = {"instruction": "Add.", "input": "2 and 2", "output": "4"}
    _, documents = converted(ConversationsConfig, tmp_path, [row], adapter="alpaca")
    assert documents[0]["messages"] == chat_of("Add.\n\n2 and 2", "4")


def test_all_formats_of_files_are_the_same_documents(tmp_path: Path) -> None:
    rows = [{"id": i, "messages": chat_of(f"{i} + {i}?", str(2 * i)), "note": None} for i in range(50)]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    files = {"a.jsonl": lines, "a.jsonl.gz": gzip.compress(lines), "a.jsonl.zst": zstandard.compress(lines)}
    made = []
    for name, data in files.items():
        (tmp_path / name / "rows").mkdir(parents=True)
        (tmp_path / name / "rows" / name).write_bytes(data)
        made.append(convert(ConversationsConfig, tmp_path / name, id_column="id"))
    (tmp_path / "parquet/rows").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "parquet/rows/a.parquet")
    made.append(convert(ConversationsConfig, tmp_path / "parquet", id_column="id"))
    assert all(other == made[0] for other in made)
    assert [document["id"] for document in made[0][1]] == [str(i) for i in range(50)]


def test_tools_are_kept_with_calls_results_and_definitions(tmp_path: Path) -> None:
    definition = {"name": "clock", "parameters": {"type": "object", "properties": {}}}
    calls = [{"id": "1", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "CET"}'}}]
    messages = [
        {"role": "user", "content": "Time?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "content": "12:00", "tool_call_id": "1"},
        {"role": "assistant", "content": "Noon."},
    ]
    shares = [
        {"from": "human", "value": "Time?"},
        {"from": "function_call", "value": '{"name": "clock", "arguments": {"zone": "CET"}}'},
        {"from": "observation", "value": "12:00"},
        {"from": "gpt", "value": "Noon."},
    ]
    _, [document] = converted(
        ConversationsConfig,
        tmp_path / "o",
        [{"messages": messages, "tools": [{"type": "function", "function": definition}]}],
    )
    _, [shared] = converted(
        ConversationsConfig,
        tmp_path / "s",
        [{"conversations": shares, "tools": json.dumps([definition])}],
        adapter="sharegpt",
    )
    call = {"type": "function", "function": {"name": "clock", "arguments": {"zone": "CET"}}}
    assert document["messages"][1] == {"role": "assistant", "content": "", "tool_calls": [{"id": "1", **call}]}
    assert document["messages"][2] == {"role": "tool", "content": "12:00", "tool_call_id": "1"}
    assert shared["messages"][1] == {"role": "assistant", "content": "", "tool_calls": [call]}
    assert document["tools"] == shared["tools"] == [{"type": "function", "function": definition}]
    assert list(document) == ["id", "messages", "tools", "source", "metadata"]
    result, _ = converted(
        ConversationsConfig, tmp_path / "r", [{"messages": messages}, {"messages": CHAT}], tools="reject"
    )
    assert reasons(result) == {"tool_calls": 1}


def test_nulls_that_parquet_adds_to_tools_are_left_out(tmp_path: Path) -> None:
    """A column has one struct for all rows, so each has the keys of the others."""
    tools = [{"name": name, "parameters": {"properties": {key: {"type": "string"}}}} for name, key in ("ax", "by")]
    rows = [{"messages": chat_of(tool["name"], "x"), "tools": [tool]} for tool in tools]
    write(tmp_path / "lines/rows/a.jsonl", rows)
    (tmp_path / "table/rows").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "table/rows/a.parquet")
    lines, table = (convert(ConversationsConfig, tmp_path / name) for name in ("lines", "table"))
    assert lines == table
    assert lines[1][0]["tools"][0]["function"] == tools[0]


def test_equal_conversations_count_once_in_all_files_whatever_the_shards(tmp_path: Path) -> None:
    drawn = random.Random(7)
    rows = [{"n": i, "messages": chat_of(f"{drawn.randrange(60)}?", "yes")} for i in range(400)]
    made = []
    for parts in (1, 2, 7):
        size = -(-len(rows) // parts)
        for part in range(parts):
            write(tmp_path / f"{parts}/rows/{part}.jsonl", rows[part * size : (part + 1) * size])
        made.append(convert(ConversationsConfig, tmp_path / str(parts), metadata_columns=("n",)))
    assert all(other == made[0] for other in made)
    first: dict[str, int] = {}
    for row in rows:
        first.setdefault(row["messages"][0]["content"], row["n"])
    assert {d["messages"][0]["content"]: d["metadata"]["n"] for d in made[0][1]} == first
    assert reasons(made[0][0]) == {"duplicate": 400 - len(first)}
    kept, documents = convert(ConversationsConfig, tmp_path / "2", output_path=f"{tmp_path}/all", duplicates="keep")
    assert (kept["conversations"], len({d["id"] for d in documents})) == (400, len(first))


def test_the_id_is_the_rows_own_or_a_hash_of_the_messages(tmp_path: Path) -> None:
    rows = [{"key": 7, "messages": CHAT}, {"key": None, "messages": chat_of("1", "2")}]
    result, documents = converted(ConversationsConfig, tmp_path, rows, id_column="key")
    assert ([d["id"] for d in documents], reasons(result)) == (["7"], {"no_id": 1})
    _, [one, _] = convert(ConversationsConfig, tmp_path, output_path=f"{tmp_path}/hashed")
    text = '{"messages":[{"content":"Two and two?","role":"user"},{"content":"Four.","role":"assistant"}]}'
    assert one["id"] == hashlib.sha256(text.encode()).hexdigest()[:32]


def test_metadata_are_the_named_columns_or_all_that_are_not_read(tmp_path: Path) -> None:
    row = {"id": "x", "messages": CHAT, "license": "MIT", "score": float("inf"), "tags": ["a"]}
    named, [one] = converted(ConversationsConfig, tmp_path, [row], id_column="id", metadata_columns=("license",))
    assert one["metadata"] == {"license": "MIT"}
    assert {k: n for k, n in named.items() if k.startswith("unread_")} == {"unread_score": 1, "unread_tags": 1}
    every, [one] = convert(
        ConversationsConfig, tmp_path, output_path=f"{tmp_path}/all", id_column="id", metadata_columns="all"
    )
    assert one["metadata"] == {"license": "MIT", "score": None, "tags": ["a"]}
    assert not [k for k in every if k.startswith("unread_")]


def test_replacements_are_made_once_and_the_longest_first(tmp_path: Path) -> None:
    row = {"messages": chat_of("a", "<think>why</think>so <thinking>")}
    changes = {"<think>": "<|t|>", "</think>": "<|/t|>", "<thinking>": "<think>"}
    _, [document] = converted(ConversationsConfig, tmp_path, [row], replacements=changes)
    assert document["messages"][1]["content"] == "<|t|>why<|/t|>so <think>"


def test_a_killed_stage_resumes_and_the_bytes_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marin_assets.stages.transform.conversations import write_rows as stage

    for part in range(4):
        write(tmp_path / f"rows/{part}.jsonl", [{"messages": chat_of(f"{part} {i % 5}", "x")} for i in range(20)])
    undisturbed = convert(ConversationsConfig, tmp_path, output_path=f"{tmp_path}/calm")
    for function in ("write_hashes", "write_rows"):
        output, calls = f"{tmp_path}/{function}", [0]
        real = getattr(stage, function)

        def dies(*arguments: Any, real: Any = real, calls: list[int] = calls, **named: Any) -> Any:
            calls[0] += 1
            if calls[0] == 3:
                raise KeyboardInterrupt
            return real(*arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(stage, function, dies)
            with pytest.raises(KeyboardInterrupt):
                convert(ConversationsConfig, tmp_path, output_path=output)
        assert convert(ConversationsConfig, tmp_path, output_path=output) == undisturbed
        assert contents(output) == contents(f"{tmp_path}/calm")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"adapter": "sharegtp"}, r"adapter is 'sharegtp', expected one of .* 'sharegpt'.* 'module:function'"),
        ({"adapter": "no_module_here:read"}, "adapter is 'no_module_here:read', which cannot be imported"),
        ({"adapter": "json:dumpz"}, "adapter is 'json:dumpz', which cannot be imported .*has no 'dumpz'"),
        ({"adapter": "json:__doc__"}, "which is no function"),
        ({"alternation": "join"}, "alternation is 'join', expected one of 'reject', 'merge', 'keep'"),
        ({"roles": {"x": "robot"}}, "roles has 'x' for 'robot', expected one of"),
        ({"replacements": {"": "x"}}, "replacements has an empty text"),
        ({"metadata_columns": "license"}, "metadata_columns is 'license', expected names in a tuple, or 'all'"),
        ({"max_rejected_fraction": 2}, "max_rejected_fraction is 2, expected a fraction"),
    ],
)
def test_a_mistake_is_a_sentence_when_the_step_is_made(changes: dict[str, Any], sentence: str) -> None:
    from marin_assets.stages.transform.conversations.conversations import conversations

    fields = {name: versioned(value) for name, value in changes.items()}
    with pytest.raises(ConversationError, match=f"Step 'conversations/x': .*{sentence}"):
        Step(name="conversations/x", fn=conversations, config=ConversationsConfig(**reading("/x", **fields)))


def test_a_value_of_another_type_is_a_sentence() -> None:
    from marin_assets.stages.transform.conversations.conversations import conversations

    with pytest.raises(ConfigError, match=r"config\.adapter is 3, a int, expected str | Turns"):
        Step(name="a/b", fn=conversations, config=ConversationsConfig(**reading("/x", adapter=versioned(3))))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], r"have no rows\. Correct rows_path"),
        (
            [{"text": "x"}] * 3,
            r"The 3 rows of .* have no conversations \(3 no_messages\).*the columns 'text'\. Check",
        ),
        (
            [{"messages": CHAT}, *[{"text": "x"}] * 2],
            r"2 of the 3 rows of .* are no conversations \(2 no_messages\), more",
        ),
        ([{"messages": CHAT}, "{"] * 3, r"3 of the 6 lines of .* are no rows \(3 invalid_json\), more than"),
    ],
)
def test_an_empty_or_wrong_result_is_an_error(rows: list[Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConversationError, match=sentence):
        converted(ConversationsConfig, tmp_path, rows)


def test_a_truncated_file_fails_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    pq.write_table(pa.Table.from_pylist([{"messages": CHAT}] * 1000), tmp_path / "rows/a.parquet")
    whole = (tmp_path / "rows/a.parquet").read_bytes()
    (tmp_path / "rows/a.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ShardError, match=r"a\.parquet' is not valid parquet after row 0"):
        convert(ConversationsConfig, tmp_path)
