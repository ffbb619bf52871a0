"""Folders such as quality=high of a file's path become metadata, and parts of ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from marin_assets.documents import Document, list_shards, read_documents
from marin_assets.stages.transform.ingest import IngestConfig, ingest
from marin_assets.stages.transform.path_keys import PathKeys, PathKeysError
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError

KEYS = PathKeys(names=("quality", "kind2"), id_key="kind2", metadata_prefix="nemotron_")


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def write(folder: Path, name: str, *rows: dict[str, Any]) -> bytes:
    path = folder / "raw" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    content = b"".join(zstandard.compress(f"{json.dumps(row)}\n".encode()) for row in rows)  # a frame each
    path.write_bytes(content)
    return content


def run(folder: Path, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
    given = {"id_column": "id", "metadata_columns": "all", "path_keys": KEYS, "bad_rows": "reject", **fields}
    config = IngestConfig(input_path=str(folder / "raw"), output_path=str(folder / "documents"), **given)
    counts = ingest(unwrap_versioned_value(config))
    shards = list_shards(config.output_path)
    return counts, [document for shard in shards for document in read_documents(shard)]


def test_a_document_has_the_folders_of_its_file_and_an_id_that_begins_with_one(tmp_path: Path) -> None:
    row = {"id": "r1", "text": "a", "lang": "en"}
    write(tmp_path, "quality=high/kind2=actual/0.jsonl.zstd", row, {**row, "id": "r2"})
    write(tmp_path, "quality=medium%2Dhigh/x/kind2=qa/1.jsonl.ZSTD", row)
    counts, documents = run(tmp_path)
    assert [(document.id, document.metadata) for document in documents] == [
        ("actual/r1", {"nemotron_lang": "en", "nemotron_quality": "high", "nemotron_kind2": "actual"}),
        ("actual/r2", {"nemotron_lang": "en", "nemotron_quality": "high", "nemotron_kind2": "actual"}),
        ("qa/r1", {"nemotron_lang": "en", "nemotron_quality": "medium-high", "nemotron_kind2": "qa"}),
    ]
    assert counts["kept"] == 3
    assert (tmp_path / "documents/quality=high/kind2=actual/0.jsonl.zst").exists()


def test_folders_alone_are_kept_and_ids_without_a_key_are_as_they_were(tmp_path: Path) -> None:
    write(tmp_path, "quality=low/a.jsonl.zst", {"id": 7, "text": "a"})
    _, (document,) = run(tmp_path, metadata_columns=(), path_keys=PathKeys(names=("quality",)))
    assert (document.id, document.metadata) == ("7", {"quality": "low"})
    _, (document,) = run(tmp_path, path_keys=None)
    assert document.metadata == {}


def test_a_column_that_states_another_value_than_the_path_is_counted(tmp_path: Path) -> None:
    rows = [{"id": str(n), "text": "a", "quality": "high"} for n in range(199)]
    write(tmp_path, "quality=high/kind2=qa/a.jsonl.zst", *rows, {"id": "x", "text": "a", "quality": "low"})
    counts, documents = run(tmp_path)
    assert (counts["kept"], counts["rejected_bad_metadata"]) == (199, 1)
    assert documents[0].metadata == {"nemotron_quality": "high", "nemotron_kind2": "qa"}
    with pytest.raises(ShardError, match=r"bad_metadata: 'quality' is 'low', and 'high' in the path"):
        run(tmp_path, bad_rows="fail")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    name = "quality=high/kind2=qa/a.jsonl.zstd"
    content = write(tmp_path, name, {"id": "1", "text": "a"}, {"id": "2", "text": "b"})
    (tmp_path / "raw" / name).write_bytes(content[:-3])
    with pytest.raises(ShardError, match=r"a\.jsonl\.zstd' is damaged or truncated after line 1"):
        run(tmp_path)


def test_a_path_without_a_folder_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    write(tmp_path, "quality=high/kind2=qa/a.jsonl.zst", {"id": "1", "text": "a"})
    write(tmp_path, "quality=high/kind2=/a.jsonl.zst", {"id": "1", "text": "a"})
    with pytest.raises(PathKeysError, match=r"The path '.*kind2=/a\.jsonl\.zst' has no folder 'kind2=…', expected one"):
        run(tmp_path)
    assert not (tmp_path / "documents").exists()


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (PathKeys(names=()), r"path_keys\.names is \(\), expected names of keys"),
        (PathKeys(names=("quality=high",)), r"path_keys\.names is \('quality=high',\), expected names of keys"),
        (PathKeys(names=("quality",), id_key="kind2"), r"path_keys\.id_key is 'kind2', expected one of names"),
    ],
    ids=["none", "value", "id_key"],
)
def test_wrong_keys_are_refused(tmp_path: Path, keys: PathKeys, sentence: str) -> None:
    with pytest.raises(PathKeysError, match=sentence):
        run(tmp_path, path_keys=keys)
