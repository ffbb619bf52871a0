"""Clusters of duplicates of which no copy is kept are counted, and a contradiction of two rankings is a warning."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, list_shards, read_documents, write_documents
from marin_assets.documents.attributes import KEPT, Decision, write_attributes
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
from marin_assets.step.values import unwrap_versioned_value

pytestmark = pytest.mark.usefixtures("in_process")

FOX = "The quick brown fox jumps over the lazy dog, and the lazy dog sleeps on until the evening of the day."
OWL = "An owl flies over the old town at night, and an old man looks at it from his window for a long time."
DOCUMENTS = [
    Document(id="fox on the web", text=FOX, source="web"),
    Document(id="fox in a book", text=FOX, source="books"),
    Document(id="fox in capitals", text=FOX.upper(), source="web"),
    Document(id="owl", text=OWL, source="web"),
    Document(id="owl again", text=OWL, source="web"),
    Document(id="alone", text="Words, words, words: this is the only text of its kind.", source="web"),
]


def decide_length(config: None) -> Any:
    return lambda d: Decision(keep=False, reason="owls", value=7.0) if "owl" in d.text else KEPT


def consolidated(folder: Path, *, ranking: tuple[str, ...], with_filter: bool = False) -> dict[str, Any]:
    documents = f"{folder}/documents"
    write_documents(f"{documents}/a.jsonl.zst", DOCUMENTS)
    run = {
        exact_duplicates: ExactDuplicatesConfig(
            documents_path=documents, output_path=f"{folder}/exact", source_ranking=ranking
        ),
        find_near_duplicates: FindNearDuplicatesConfig(documents_path=documents, output_path=f"{folder}/clusters"),
        decide_near_duplicates: DecideNearDuplicatesConfig(
            documents_path=documents,
            clusters_path=f"{folder}/clusters",
            output_path=f"{folder}/near",
            sources=("books", "web"),
        ),
    }
    for stage, config in run.items():
        stage(unwrap_versioned_value(config))  # type: ignore[operator]
    write_attributes(documents, f"{folder}/filter", decide_length, None)
    names = ["exact", "near", *(["filter"] if with_filter else [])]
    config = ConsolidateConfig(
        documents_path=documents,
        attributes=[Applied(name=name, path=f"{folder}/{name}") for name in names],
        output_path=f"{folder}/kept",
    )
    return consolidate(unwrap_versioned_value(config))


def kept(folder: Path) -> list[str]:
    return [document.id for shard in list_shards(f"{folder}/kept") for document in read_documents(shard)]


def clusters(result: dict[str, Any]) -> dict[str, int]:
    return {name: number for name, number in result.items() if name.startswith("clusters_")}


def test_two_rankings_that_reject_each_others_copies_are_counted_and_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        result = consolidated(tmp_path, ranking=())
    assert kept(tmp_path) == ["owl", "alone"], "no fox is left"
    assert clusters(result) == {
        "clusters_without_copy_exact": 1,
        "clusters_without_copy_near": 1,
        "clusters_contradicted_near": 1,
    }
    [line] = [record.getMessage() for record in caplog.records if "no copy left" in record.getMessage()]
    assert line.startswith("1 clusters of the attribute 'near' have no copy left: another attribute rejects the copy")


def test_one_ranking_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    result = consolidated(tmp_path, ranking=("books", "web"))
    assert kept(tmp_path) == ["fox in a book", "owl", "alone"]
    assert clusters(result) == {}
    assert "no copy left" not in caplog.text


def test_a_cluster_whose_copy_a_filter_rejects_is_counted_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = consolidated(tmp_path, ranking=("books", "web"), with_filter=True)
    assert kept(tmp_path) == ["fox in a book", "alone"]
    assert clusters(result) == {"clusters_without_copy_exact": 1, "clusters_without_copy_near": 1}
    assert "no copy left" not in caplog.text
