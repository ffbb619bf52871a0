"""Files that are one JSON list become lines, whatever their size; a damaged one is an error, never a shorter list."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents.rows import read_rows
from marin_assets.stages.transform import json_lists
from marin_assets.stages.transform.json_lists import JsonListError, JsonListsConfig, elements_of, rows_of_json_lists
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError

ROWS = [{"query": 'a "q", [1] {2}', "n": [1, {"x": None}]}, {"query": "ünï\n" * 50, "n": []}, {}]


def make(folder: Path, output: Path, **fields: Any) -> dict[str, Any]:
    config = JsonListsConfig(input_path=str(folder), output_path=str(output), **fields)
    return rows_of_json_lists(unwrap_versioned_value(config))


def rows_below(output: Path) -> dict[str, list[Any]]:
    return {
        str(path.relative_to(output)): [row for _, row in read_rows(str(path))]
        for path in sorted(output.rglob("*.jsonl.zst"))
    }


def test_lists_of_objects_and_of_texts_become_rows(tmp_path: Path) -> None:
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/a.json").write_text(json.dumps(ROWS, indent=2))
    (tmp_path / "in/sub/b.json").write_text("\ufeff" + json.dumps(["one", "two"]))
    (tmp_path / "in/README.md").write_text("# Lists")
    (tmp_path / "in/checksums.json").write_text("{}")
    result = make(tmp_path / "in", tmp_path / "out")
    assert result == {"files": 2, "rows": 5, "ignored_files": 2}
    assert rows_below(tmp_path / "out") == {
        "a.jsonl.zst": ROWS,
        "sub/b.jsonl.zst": [{"text": "one"}, {"text": "two"}],
    }


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 64, 2**20])
def test_the_elements_do_not_depend_on_where_the_file_is_divided(
    chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lists, "CHUNK_BYTES", chunk_bytes)
    drawn = random.Random(chunk_bytes)
    rows = [{"t": 'é\\"]}, {[' * drawn.randrange(5), "n": drawn.random()} for _ in range(40)]
    for indent in (None, 1):
        path = tmp_path / f"{indent}.json"
        path.write_text(json.dumps(rows, indent=indent, ensure_ascii=bool(indent)))
        assert list(elements_of(str(path))) == rows


@pytest.mark.parametrize("text", ["[]", " [ ] ", "[\n]"])
def test_an_empty_list_has_no_elements(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    assert list(elements_of(str(tmp_path / "a.json"))) == []


@pytest.mark.parametrize("end", range(1, 30))
def test_a_list_that_ends_early_is_an_error(end: int, tmp_path: Path) -> None:
    whole = json.dumps([{"a": 1}, {"b": [2, "c"]}])
    (tmp_path / "a.json").write_text(whole[: -min(end, len(whole) - 1)])
    with pytest.raises(JsonListError, match=r"ends after element \d, within its list|Element \d .* is no JSON"):
        list(elements_of(str(tmp_path / "a.json")))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"a": 1}', "begins with '{', expected a JSON list"),
        (b'[{"a": 1} {"b": 2}]', "has '{' after element 1, expected ',' or ']'"),
        (b"[1, 2]", "Element 1 of .* is 1, expected an object or a text"),
        (b'["\xff"]', "is no UTF-8"),
    ],
)
def test_another_file_is_one_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_bytes(content)
    with pytest.raises(ShardError, match=sentence):
        make(tmp_path / "in", tmp_path / "out")


def test_a_folder_without_lists_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    with pytest.raises(FileNotFoundError, match=r"No file '\.json' exists below"):
        make(tmp_path, tmp_path / "out")
