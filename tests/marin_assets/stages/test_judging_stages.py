"""Stages that judge or change documents one by one: neither kills nor other shards change the row of a document."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from drawn_kills import StageRuns, require_same_bytes_after_kills, stage_runs
from golden_texts import golden_pages
from personal_texts import labelled_texts

from marin_assets.documents import Document, read_rows, shard_name, write_documents

STAGES = "marin_assets.stages"
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "filter_documents": (
        f"{STAGES}.filter.filter_documents:filter_documents",
        "FilterDocumentsConfig",
        {"words": "fast"},
    ),
    "identify_language": (f"{STAGES}.language.identify_language:identify_language", "IdentifyLanguageConfig", {}),
    "find_personal_data": (
        f"{STAGES}.personal_data.find_personal_data:find_personal_data",
        "FindPersonalDataConfig",
        {},
    ),
    "replace_personal_data": (
        f"{STAGES}.personal_data.replace_personal_data:replace_personal_data",
        "ReplacePersonalDataConfig",
        {},
    ),
}
"""Name -> stage, config and its fields."""
IN_ORDER = {
    "repeated_passages": (
        f"{STAGES}.dedup.repeated_passages:repeated_passages",
        "RepeatedPassagesConfig",
        {"words": 5},
    ),
}
"""Stages whose decisions depend on the documents' order, so on the order of the shards."""


@pytest.fixture(scope="module")
def runs() -> Iterator[StageRuns]:
    with stage_runs() as runs:
        yield runs


def write_corpus(folder: Path, shards: int) -> str:
    texts = [*golden_pages()[:60], *(labelled.text for labelled in islice(labelled_texts(), 60))]
    random.Random(4).shuffle(texts)
    documents = [Document(id=f"page-{n}", text=text, source="made") for n, text in enumerate(texts)]
    for shard in range(shards):
        write_documents(str(folder / shard_name(shard, shards)), documents[shard::shards])
    return str(folder)


def rows_by_id(folder: Path) -> dict[str, Any]:
    rows = [row for path in sorted(folder.glob("*.zst")) for _, row in read_rows(str(path))]
    assert all(isinstance(row, dict) for row in rows)
    return {row["id"]: row for row in rows if isinstance(row, dict)}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [*CASES, *IN_ORDER])
def test_a_stage_that_is_killed_ten_times_ends_with_the_same_bytes(runs: StageRuns, tmp_path: Path, name: str) -> None:
    stage, config, fields = {**CASES, **IN_ORDER}[name]
    documents = write_corpus(tmp_path / "documents", 5)
    require_same_bytes_after_kills(runs, stage, config, {**fields, "documents_path": documents}, tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_a_documents_row_is_the_same_whatever_the_shards(runs: StageRuns, tmp_path: Path, name: str) -> None:
    stage, config, fields = CASES[name]
    outputs = []
    for shards in (1, 4):
        documents = write_corpus(tmp_path / f"documents{shards}", shards)
        output = tmp_path / f"out{shards}"
        runs.run(stage, config, {**fields, "documents_path": documents, "output_path": str(output)})
        outputs.append(rows_by_id(output))
    assert len(outputs[0]) == 120
    assert outputs[0] == outputs[1]
