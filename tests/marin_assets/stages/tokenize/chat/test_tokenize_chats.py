from __future__ import annotations

import json
import shutil
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from sum_chats import chat_of, doubles, write_lines
from tokenizer_settings import with_settings

from marin_assets.documents.position import SPLITS
from marin_assets.stages.tokenize.cache import read_documents_of, read_names
from marin_assets.stages.tokenize.chat import tokenize_rows as stage
from marin_assets.stages.tokenize.chat.templates import TEMPLATES
from marin_assets.stages.tokenize.chat.tokenize_chats import TokenizeChatsConfig, tokenize_chats
from marin_assets.stages.tokenize.tokenize import TokenizeError
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_bytes, read_json, stored_files
from marin_resources.storage.paths import join

WINDOW = 64


def make(rows: Path, tokenizer: str, output: str, **changes: Any) -> dict[str, Any]:
    config = {"chat_template": TEMPLATES["plain"], "max_seq_len": WINDOW, "validation_fraction": 0.2, **changes}
    return tokenize_chats(
        unwrap_versioned_value(
            TokenizeChatsConfig(chats_path=str(rows), tokenizer_path=tokenizer, output_path=output, **config)
        )
    )


@pytest.fixture(scope="module")
def rows_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 chats in two files."""
    folder = tmp_path_factory.mktemp("rows")
    rows = doubles(200)
    for i in range(2):
        write_lines(folder / f"{i}.jsonl", rows[i::2])
    return folder


@pytest.fixture(scope="module")
def made(rows_path: Path, tokenizer_path: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    output = str(tmp_path_factory.mktemp("cache"))
    return output, make(rows_path, tokenizer_path, output)


def stored(output: str, split: str) -> list[tuple[list[int], list[int]]]:
    """Tokens and mask of each row of a split."""
    rows = []
    for shard in ("00000", "00001"):
        path = f"{output}/{split}/{shard}"
        [names] = read_names(f"{output}/{split}", [shard])
        fields = [read_documents_of(path, range(len(names.ids)), name) for name in ("input_ids", "assistant_masks")]
        rows += [(ids.tolist(), mask.tolist()) for ids, mask in zip(*fields, strict=True)]
    return rows


def contents(path: str) -> dict[str, bytes]:
    return {file.name: read_bytes(file.path) for file in stored_files(path)}


def test_the_mask_decodes_to_the_answers_and_their_ends(made: tuple[str, dict[str, Any]], tokenizer_path: str) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{tokenizer_path}/tokenizer.json")
    chats = {row["id"]: row["messages"] for row in doubles(200)}
    names = [name for shard in read_names(f"{made[0]}/train", ["00000", "00001"]) for name in shard.ids]
    for name, (ids, mask) in zip(names, stored(made[0], "train"), strict=True):
        learnt = tokenizer.decode([i for i, m in zip(ids, mask, strict=True) if m], skip_special_tokens=False)
        answers = [message["content"] for message in chats[name] if message["role"] == "assistant"]
        assert learnt == "".join(f" {answer}<|eos|>" for answer in answers)
        assert ids[0] == 0, "bos"
        said = "".join(
            f"User: {m['content']}\n" if m["role"] == "user" else f"Assistant: {m['content']}<|eos|>\n"
            for m in chats[name]
        )
        assert tokenizer.decode(ids, skip_special_tokens=False) == f"<|bos|>{said}"


def test_a_tokenizers_own_truncation_and_padding_change_no_row(
    made: tuple[str, dict[str, Any]], rows_path: Path, tokenizer_path: str, tmp_path: Path
) -> None:
    result = make(rows_path, with_settings(tokenizer_path, tmp_path / "changed"), f"{tmp_path}/out")
    assert result == made[1]
    assert all(stored(f"{tmp_path}/out", split) == stored(made[0], split) for split in SPLITS)


@pytest.mark.long
def test_the_rows_are_those_of_levanter(made: tuple[str, dict[str, Any]], tokenizer_path: str) -> None:
    """Its processor of chats, with the same template."""
    from levanter.data.text import ChatLmDatasetFormat
    from levanter.tokenizers import load_tokenizer

    processor = ChatLmDatasetFormat(chat_template=TEMPLATES["plain"]).build_preprocessor(load_tokenizer(tokenizer_path))
    ours = sorted(row for split in SPLITS for row in stored(made[0], split))
    theirs = sorted((row["input_ids"].tolist(), row["assistant_masks"].tolist()) for row in processor(doubles(200)))
    assert ours == theirs


def test_every_row_is_kept_and_counted(made: tuple[str, dict[str, Any]]) -> None:
    output, result = made
    rows = {split: stored(output, split) for split in SPLITS}
    assert json.loads(json.dumps(result)) == result
    assert (result["rows"], result["kept"], result["rejected"], result["rows_unaccounted"]) == (200, 200, 0, 0)
    assert (result["train_rows"], result["validation_rows"]) == (len(rows["train"]), len(rows["validation"]))
    assert 20 < result["validation_rows"] < 60
    assert result["tokens"] == sum(len(ids) for side in rows.values() for ids, _ in side)
    assert result["loss_tokens"] == sum(sum(mask) for side in rows.values() for _, mask in side)
    assert (result["token_mismatches"], result["prompt_mismatches"], result["cut"]) == (0, 0, 0)
    assert result["checked_rows"] >= 32


def test_the_ledger_says_what_the_rows_are(made: tuple[str, dict[str, Any]]) -> None:
    metadata = read_json(f"{made[0]}/train/shard_ledger.json")["metadata"]["preprocessor_metadata"]
    assert (metadata["format"], metadata["max_seq_len"], metadata["stop_token_id"]) == ("chat", WINDOW, 1)
    assert metadata["chat_template"] == TEMPLATES["plain"]


def test_what_is_cut_at_the_window_is_counted_and_no_row_without_an_answer_is_kept(
    tokenizer_path: str, tmp_path: Path
) -> None:
    rows = [
        {"messages": chat_of("1 + 1", "2")},
        {"messages": chat_of("count", "one two three " * 40)},
        {"messages": chat_of("a long question " * 40, "yes")},
    ]
    result = make(write_lines(tmp_path / "r/a.jsonl", rows), tokenizer_path, f"{tmp_path}/out", validation_fraction=0)
    assert (result["kept"], result["cut"], result["rejected_cut_before_answer"]) == (2, 1, 1)
    assert result["tokens"] - WINDOW < 30
    whole = make(tmp_path / "r", tokenizer_path, f"{tmp_path}/whole", validation_fraction=0, max_seq_len=10_000)
    first = read_documents_of(f"{tmp_path}/whole/train/00000", [1])[0]
    assert (whole["cut"], result["cut_tokens"]) == (0, len(first) - WINDOW)


def test_rows_that_are_no_chats_are_counted_by_reason(tokenizer_path: str, tmp_path: Path) -> None:
    lines = [
        {"messages": chat_of("1 + 1", "2")},
        "{not json",
        {"messages": []},
        {"other": 1},
        {"messages": chat_of("a question alone")},
        {"messages": chat_of("question", " ")},
        {"messages": [{"role": "narrator", "content": "x"}]},
        {"messages": [{"role": "assistant", "content": 7}]},
        {"messages": chat_of("end it: <|eos|>", "no")},
        {
            "messages": [
                *chat_of("the time?", "It is"),
                {"role": "assistant", "content": "x", "tool_calls": [{"id": 1}]},
            ]
        },
        {"messages": [*chat_of("x"), {"role": "assistant", "content": "y", "weight": 0}]},
        {"messages": [*chat_of("x"), {"role": "assistant", "content": "y", "weight": 0.5}]},
        {"messages": [{"role": "user", "content": "x", "weight": 1}, {"role": "assistant", "content": "y"}]},
        {"system": "Be brief.", "messages": [{"role": "system", "content": "Be long."}, *chat_of("x", "y")]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "text": "a cat"}]}, *chat_of("x", "y")]},
    ]
    result = make(write_lines(tmp_path / "r/a.jsonl", lines), tokenizer_path, f"{tmp_path}/out", validation_fraction=0)
    reasons = {name.removeprefix("rejected_"): n for name, n in result.items() if name.startswith("rejected_")}
    assert reasons == {
        "invalid_json": 1,
        "no_messages": 2,
        "no_assistant": 1,
        "empty_message": 1,
        "unknown_role": 1,
        "not_text": 2,
        "special_token": 1,
        "tool_calls": 1,
        "nothing_to_learn": 1,
        "unknown_weight": 2,
        "two_systems": 1,
    }
    assert (result["rows"], result["kept"], result["rejected"], result["rows_unaccounted"]) == (15, 1, 14, 0)


def read_back(output: str, tokenizer_path: str) -> list[tuple[str, list[str]]]:
    """Each chat's text, and the texts that are learnt."""
    from tokenizers import Tokenizer

    read = Tokenizer.from_file(f"{tokenizer_path}/tokenizer.json")
    [names] = read_names(f"{output}/train", ["00000"])
    columns = [
        read_documents_of(f"{output}/train/00000", range(len(names.ids)), name)
        for name in ("input_ids", "assistant_masks")
    ]
    found = []
    for ids, mask in zip(*(column for column in columns), strict=True):
        runs = [list(run) for learnt, run in groupby(zip(ids, mask, strict=True), lambda pair: pair[1]) if learnt]
        texts = [read.decode([i for i, _ in run], skip_special_tokens=False) for run in runs]
        found.append((read.decode(list(ids), skip_special_tokens=False), texts))
    return found


def test_the_system_field_of_a_row_is_its_first_message(tokenizer_path: str, tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "ho"}]
    rows = [
        {"system": "Be brief.", "conversations": turns},
        {"system": "Be brief.", "conversations": [{"from": "system", "value": "Be brief."}, *turns]},
        {"system": None, "conversations": turns},
        {"system": ["x"], "conversations": turns},
    ]
    out = f"{tmp_path}/out"
    path = write_lines(tmp_path / "r/a.jsonl", rows)
    result = make(path, tokenizer_path, out, adapter="sharegpt", validation_fraction=0)
    told = "<|bos|>System: Be brief.\nUser: hi\nAssistant: ho<|eos|>\n"
    assert read_back(out, tokenizer_path) == [
        (told, [" ho<|eos|>"]),
        (told, [" ho<|eos|>"]),
        ("<|bos|>User: hi\nAssistant: ho<|eos|>\n", [" ho<|eos|>"]),
    ]
    assert (result["rejected_not_text"], result["prompt_mismatches"]) == (1, 0)


def test_an_answer_of_weight_0_is_read_and_not_learnt(tokenizer_path: str, tmp_path: Path) -> None:
    first, second = ({"role": "assistant", "content": text} for text in ("wrong", "right"))
    rows: list[dict[str, Any]] = [
        {"messages": [*chat_of("a"), {**first, "weight": 0}, *chat_of("b"), {**second, "weight": 1}]},
        {"messages": [*chat_of("a"), {**first, "weight": None}, *chat_of("b"), {**second, "weight": 0.0}]},
    ]
    out = f"{tmp_path}/out"
    result = make(write_lines(tmp_path / "r/a.jsonl", rows), tokenizer_path, out, validation_fraction=0)
    whole = "<|bos|>User: a\nAssistant: wrong<|eos|>\nUser: b\nAssistant: right<|eos|>\n"
    assert read_back(out, tokenizer_path) == [(whole, [" right<|eos|>"]), (whole, [" wrong<|eos|>"])]
    assert (result["token_mismatches"], result["prompt_mismatches"]) == (0, 0)


def test_a_weight_is_refused_where_the_template_does_not_show_which_answer_it_is_of(
    tokenizer_path: str, tmp_path: Path
) -> None:
    last_alone = (
        "{{ bos_token }}{% for message in messages %}"
        "{% if loop.last %}{% generation %}{{ message['content'] }}{{ eos_token }}{% endgeneration %}"
        "{% else %}{{ message['content'] }}{% endif %}{% endfor %}"
    )
    rows = [
        {"messages": [*chat_of("a"), {"role": "assistant", "content": "b", "weight": 0}, *chat_of("c", "d")]},
        {"messages": chat_of("a", "b", "c", "d")},
    ]
    path = write_lines(tmp_path / "r/a.jsonl", rows)
    out = f"{tmp_path}/out"
    result = make(path, tokenizer_path, out, chat_template=last_alone, validation_fraction=0)
    assert (result["kept"], result["rejected_unknown_weight"]) == (1, 1)
    assert read_back(out, tokenizer_path) == [("<|bos|>abcd<|eos|>", ["d<|eos|>"])]


def test_keys_that_are_not_read_are_counted(tokenizer_path: str, tmp_path: Path) -> None:
    named = {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}
    rows: list[dict[str, Any]] = [
        {"id": "1", "source": "tulu", "messages": [{**named, "name": "Eve"}, *chat_of("a", "b")[1:]]},
        {"id": "2", "source": "tulu", "tools": [], "note": None, "messages": chat_of("a", "b")},
        {"id": "3", "source": "tulu", "tools": [{"name": "clock"}], "messages": chat_of("a", "b")},
        {"id": "4", "messages": chat_of("a"), "source": "not a chat"},
        {"id": "5", "messages": chat_of("a", "b"), **{f"column {i}": 1 for i in range(100)}, "x" * 200: 1},
    ]
    path = write_lines(tmp_path / "r/a.jsonl", rows)
    result = make(path, tokenizer_path, f"{tmp_path}/out", validation_fraction=0)
    unread = {name.removeprefix("unread_"): n for name, n in result.items() if name.startswith("unread_")}
    columns = {name for name in unread if name.startswith("column ")}
    assert {name: n for name, n in unread.items() if name not in columns} == {
        "source": 3,
        "tools": 1,
        "messages.name": 1,
        "messages.content.cache_control": 1,
        "others": 1,
    }
    assert len(columns) == 16
    assert result["rows_unaccounted"] == 0


def test_the_same_rows_are_the_same_bytes_on_every_store(
    made: tuple[str, dict[str, Any]], rows_path: Path, tokenizer_path: str, any_prefix: str
) -> None:
    output = join(any_prefix, "chats")
    assert make(rows_path, tokenizer_path, output) == made[1]
    assert contents(output) == contents(made[0])


def test_a_killed_stage_resumes_with_the_unfinished_shards(
    made: tuple[str, dict[str, Any]],
    rows_path: Path,
    tokenizer_path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = f"{tmp_path}/out"
    with monkeypatch.context() as dying:
        write = stage.write_rows
        written: list[str] = []

        def write_some(path: str, *rest: Any) -> None:
            if len(written) == 3:
                raise KeyboardInterrupt  # in the second shard, between its two splits
            written.append(path)
            write(path, *rest)

        dying.setattr(stage, "write_rows", write_some)
        with pytest.raises(KeyboardInterrupt):
            make(rows_path, tokenizer_path, output)
    before = contents(f"{output}/train/00000") if "00000" in written[0] else contents(f"{output}/train/00001")
    finished = written[0]
    stamps = {file.name: file.stamp for file in stored_files(finished)}
    assert make(rows_path, tokenizer_path, output) == made[1]
    assert before
    assert {file.name: file.stamp for file in stored_files(finished)} == stamps
    assert contents(output) == contents(made[0])


def test_other_shapes_of_rows_are_the_same_chats(tokenizer_path: str, tmp_path: Path) -> None:
    chat = [("1 + 1", "2"), ("2 + 2", "4")]
    shapes: dict[str, list[dict[str, Any]]] = {
        "openai": [{"id": str(i), "messages": chat_of(*turn)} for i, turn in enumerate(chat)],
        "sharegpt": [
            {"id": str(i), "conversations": [{"from": "human", "value": q}, {"from": "gpt", "value": a}]}
            for i, (q, a) in enumerate(chat)
        ],
        "dolly": [
            {"id": str(i), "instruction": q, "context": "", "response": a, "category": "sum"}
            for i, (q, a) in enumerate(chat)
        ],
    }
    made = []
    for adapter, rows in shapes.items():
        path = write_lines(tmp_path / adapter / "rows.jsonl", rows)
        make(path, tokenizer_path, f"{tmp_path}/{adapter}-out", adapter=adapter, validation_fraction=0)
        made.append(contents(f"{tmp_path}/{adapter}-out"))
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"adapter": "opeanai"}, r"adapter is 'opeanai', expected one of 15 names\. Did you mean 'openai'\?"),
        ({"adapter": "dolly"}, r"Of 200 rows 0 are kept, and these are rejected: \{'empty_message': 200\}"),
        ({"max_seq_len": 0}, "max_seq_len is 0, expected a number of tokens of at least 2"),
        ({"chat_template": "{{ messages }"}, "The chat template is not Jinja"),
        ({"chat_template": "{{ bos_token }}{{ messages[1].content }}"}, r"no answer within \{% generation %\}"),
        ({"chat_template": TEMPLATES["plain"].replace("{{ bos_token }}", "")}, "does not begin with the bos_token"),
        ({"chat_template": TEMPLATES["chatml"]}, r"ends an answer with '\|?>', which is no special token"),
        ({"chat_template": "{{ strftime_now('%Y') }}"}, "cannot render .*'strftime_now' is undefined"),
    ],
)
def test_a_mistake_is_a_sentence(
    rows_path: Path, tokenizer_path: str, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        make(rows_path, tokenizer_path, f"{tmp_path}/out", **changes)


def test_a_tokenizer_without_a_folder_is_an_error(rows_path: Path, tmp_path: Path) -> None:
    with pytest.raises(TokenizeError, match=r"No tokenizer\.json exists at"):
        make(rows_path, f"{tmp_path}/none", f"{tmp_path}/out")


def test_a_row_without_an_id_is_on_the_side_of_its_text(tokenizer_path: str, tmp_path: Path) -> None:
    rows = [{"messages": row["messages"]} for row in doubles(60)]
    one = write_lines(tmp_path / "one/a.jsonl", rows)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    write_lines(tmp_path / "two/b.jsonl", rows[:30])
    make(one, tokenizer_path, f"{tmp_path}/out-one")
    make(tmp_path / "two", tokenizer_path, f"{tmp_path}/out-two")
    sides = [
        {split: {n for s in read_names(f"{out}/{split}", shards) for n in s.ids} for split in SPLITS}
        for out, shards in ((f"{tmp_path}/out-one", ["00000"]), (f"{tmp_path}/out-two", ["00000", "00001"]))
    ]
    assert sides[0] == sides[1]
    assert not sides[0]["train"] & sides[0]["validation"]
