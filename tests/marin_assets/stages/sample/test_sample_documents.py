"""Samples have the given size, and the same documents for any shards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, list_shards, read_documents, shard_name
from marin_assets.documents.position import SampleError, split_of
from marin_assets.stages.sample.sample_documents import SampleDocumentsConfig, sample_documents
from marin_assets.step.values import unwrap_versioned_value

Write = Callable[[list[Document], int], str]
Read = Callable[[Path], list[Document]]


def sample(path: str, output: Path, **changes: Any) -> dict[str, int | float]:
    config = SampleDocumentsConfig(documents_path=path, output_path=str(output), **changes)
    return sample_documents(unwrap_versioned_value(config))


def ids(documents: list[Document]) -> list[str]:
    return sorted(d.id for d in documents)


@pytest.mark.parametrize("size", [{"fraction": 0.2}, {"count": 123}])
def test_a_sample_is_the_same_for_any_number_of_shards(
    tmp_path: Path, documents: list[Document], write: Write, read: Read, size: dict[str, Any]
) -> None:
    found = []
    for shards in (1, 3, 8):
        result = sample(write(documents, shards), tmp_path / str(shards), **size)
        found.append(ids(read(tmp_path / str(shards))))
        assert result["kept"] == len(found[-1])
        assert result["documents"] == len(documents) == result["kept"] + result["rejected_not_sampled"]
        assert result["bytes_kept"] == sum(len(d.text.encode()) for d in read(tmp_path / str(shards)))
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) == size.get("count", len(found[0]))
    assert abs(len(found[0]) / len(documents) - size.get("fraction", 123 / len(documents))) < 0.04


def test_documents_keep_their_shard_and_order(tmp_path: Path, documents: list[Document], write: Write) -> None:
    sample(write(documents, 3), tmp_path / "out", count=50)
    for i, path in enumerate(list_shards(str(tmp_path / "out"))):
        assert Path(path).name == shard_name(i, 3)
        kept = list(read_documents(path))
        assert kept == [d for d in documents[i::3] if d in kept]


def test_a_smaller_sample_is_part_of_a_larger_one(
    tmp_path: Path, documents: list[Document], write: Write, read: Read
) -> None:
    path = write(documents, 3)
    sizes = [{"count": 10}, {"count": 40}, {"fraction": 0.1}, {"fraction": 0.3}]
    for i, size in enumerate(sizes):
        sample(path, tmp_path / str(i), **size)
    found = [set(ids(read(tmp_path / str(i)))) for i in range(4)]
    assert found[0] < found[1] < found[2] < found[3]
    sample(path, tmp_path / "seed", count=40, seed=1)
    assert set(ids(read(tmp_path / "seed"))) != found[1]


def test_a_sample_has_documents_of_both_sides_of_the_split(
    tmp_path: Path, documents: list[Document], write: Write, read: Read
) -> None:
    sample(write(documents, 1), tmp_path / "out", fraction=0.05, key="page", seed=3)
    assert "train" in {split_of(d, 0.05) for d in read(tmp_path / "out")}


def test_a_sample_by_page_holds_whole_pages(
    tmp_path: Path, documents: list[Document], write: Write, read: Read
) -> None:
    sample(write(documents, 3), tmp_path / "out", fraction=0.3, key="page")
    pages = {d.metadata["page"] for d in read(tmp_path / "out")}
    assert ids(read(tmp_path / "out")) == ids([d for d in documents if d.metadata["page"] in pages])
    assert 3 < len(pages) < 25


def test_a_count_is_exact_also_for_repeated_ids_and_large_pages(tmp_path: Path, write: Write, read: Read) -> None:
    twins = [Document(id="a", text=f"twin {i}", metadata={"page": "p"}) for i in range(20)]
    for shards, key in ((1, "id"), (3, "page")):
        assert sample(write(twins, shards), tmp_path / f"out{shards}", count=7, key=key)["kept"] == 7
        assert len(read(tmp_path / f"out{shards}")) == 7


def test_all_documents_may_be_sampled_and_no_more(tmp_path: Path, documents: list[Document], write: Write) -> None:
    path = write(documents, 2)
    assert sample(path, tmp_path / "all", count=len(documents))["rejected"] == 0
    assert sample(path, tmp_path / "whole", fraction=1.0)["rejected"] == 0
    with pytest.raises(SampleError, match=rf"has {len(documents)} documents, expected at least count=5000\. Lower"):
        sample(path, tmp_path / "more", count=5000)


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        ({}, "fraction=None and count=None, expected one of them"),
        ({"fraction": 0.1, "count": 1}, "fraction=0.1 and count=1, expected one of them"),
        ({"fraction": 0}, "fraction=0, expected a number above 0 and at most 1"),
        ({"fraction": 1.5}, "fraction=1.5, expected"),
        ({"count": 0}, "count=0, expected at least 1"),
    ],
)
def test_an_invalid_size_is_an_error(tmp_path: Path, write: Write, size: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SampleError, match=sentence):
        sample(write([Document(id="a", text="b")], 1), tmp_path / "out", **size)


def test_the_output_is_the_same_here_and_on_ray(
    tmp_path: Path,
    documents: list[Document],
    write: Write,
    data_below: Any,
    shared_ray: None,
    request: pytest.FixtureRequest,
) -> None:
    path = write(documents, 3)
    on_ray = sample(path, tmp_path / "on_ray", count=99)
    request.getfixturevalue("in_process")
    assert sample(path, tmp_path / "here", count=99) == on_ray
    assert data_below(tmp_path / "here") == data_below(tmp_path / "on_ray")
