"""What a group of shards reads of another phase's results does not grow with the number of shards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from counted_reads import counted_reads
from near_duplicate_texts import decide, find

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
from marin_assets.stages.dedup.exact_paragraphs import DuplicateParagraphsConfig, duplicate_paragraphs
from marin_assets.step.values import unwrap_versioned_value

FEW, MANY = 8, 64
LIMIT = 1.2


@pytest.fixture(autouse=True)
def a_task_for_each_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, as many tasks as with large shards."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
    monkeypatch.setattr("marin_resources.ray_tpu.shards.file_shards.MAX_SMALL_GROUPS", 10**6)


def corpus(folder: Path, shards: int) -> str:
    """Write shards of two documents, one of which has a copy in the next shard."""
    for i in range(shards):
        own, copy = f"only shard {i} has these words and no other has them", f"shared by {'abcdefgh'[i % 8]} " * 4
        documents = [Document(id=f"{i} {name}", text=text) for name, text in (("own", own), ("copy", copy))]
        write_documents(f"{folder}/{shard_name(i, shards)}", documents)
    return str(folder)


def near(documents: str, out: Path) -> None:
    find(documents, out / "clusters")
    decide(documents, out / "clusters", out / "judged")


def exact(documents: str, out: Path) -> None:
    exact_duplicates(unwrap_versioned_value(ExactDuplicatesConfig(documents_path=documents, output_path=str(out))))


def paragraphs(documents: str, out: Path) -> None:
    config = DuplicateParagraphsConfig(documents_path=documents, output_path=str(out))
    duplicate_paragraphs(unwrap_versioned_value(config))


@pytest.mark.long
@pytest.mark.parametrize("stage", [near, exact, paragraphs])
def test_bytes_read_for_each_document_do_not_grow_with_the_shards(
    tmp_path: Path, stage: Callable[[str, Path], Any]
) -> None:
    each = {}
    for shards in (FEW, MANY):
        documents = corpus(tmp_path / f"{shards:03d}", shards)
        with counted_reads() as counts:
            stage(documents, tmp_path / f"out {shards:03d}")
        each[shards] = sum(counts.values()) / shards
    assert each[MANY] <= LIMIT * each[FEW]
