"""Every document is in one part, which depends only on its key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, list_shards, read_documents, shard_name
from marin_assets.documents.position import SampleError, split_of
from marin_assets.stages.sample.split_documents import SplitDocumentsConfig, split_documents
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError

Write = Callable[[list[Document], int], str]
Read = Callable[[Path], list[Document]]


def split(path: str, output: Path, **changes: Any) -> dict[str, int | float]:
    config = SplitDocumentsConfig(documents_path=path, output_path=str(output), **changes)
    return split_documents(unwrap_versioned_value(config))


def ids(documents: list[Document]) -> set[str]:
    return {d.id for d in documents}


def test_every_document_is_in_one_part_unchanged(
    tmp_path: Path, documents: list[Document], write: Write, read: Read
) -> None:
    parts = (("test", 0.1), ("validation", 0.2), ("train", 0.7))
    result = split(write(documents, 3), tmp_path / "out", parts=parts, key="id")
    found = {name: read(tmp_path / "out" / name) for name, _ in parts}
    assert sorted((d.id, d.text) for part in found.values() for d in part) == sorted((d.id, d.text) for d in documents)
    assert result["documents"] == len(documents)
    assert result["bytes"] == sum(len(d.text.encode()) for d in documents)
    assert result["documents_unaccounted"] == 0
    for name, fraction in parts:
        assert result[f"documents_{name}"] == len(found[name])
        assert result[f"bytes_{name}"] == sum(len(d.text.encode()) for d in found[name])
        assert abs(len(found[name]) / len(documents) - fraction) < 0.05  # three standard errors of some 900
    assert [Path(p).name for p in list_shards(str(tmp_path / "out/train"))] == [shard_name(i, 3) for i in range(3)]


def test_validation_as_the_first_part_is_the_side_that_tokenize_holds_out(
    tmp_path: Path, documents: list[Document], write: Write, read: Read
) -> None:
    split(write(documents, 2), tmp_path / "out")
    expected = ids([d for d in documents if split_of(d, 0.05) == "validation"])
    assert ids(read(tmp_path / "out/validation")) == expected != set()


def test_the_pieces_of_a_page_stay_together_and_another_seed_splits_differently(
    tmp_path: Path, documents: list[Document], write: Write, read: Read
) -> None:
    path, halves = write(documents, 2), (("a", 0.5), ("b", 0.5))
    split(path, tmp_path / "out", parts=halves, seed=1)
    pages = [{d.metadata["page"] for d in read(tmp_path / "out" / part)} for part in "ab"]
    assert not pages[0] & pages[1]
    assert min(map(len, pages)) > 5
    split(path, tmp_path / "other", parts=halves, seed=2)
    assert ids(read(tmp_path / "other/a")) != ids(read(tmp_path / "out/a"))


def test_added_documents_move_no_others(tmp_path: Path, documents: list[Document], write: Write, read: Read) -> None:
    split(write(documents[:500], 2), tmp_path / "few")
    split(write(documents, 5), tmp_path / "all")
    assert ids(read(tmp_path / "few/validation")) <= ids(read(tmp_path / "all/validation"))
    assert ids(read(tmp_path / "few/train")) <= ids(read(tmp_path / "all/train"))


@pytest.mark.parametrize(
    "parts", [(("a", 0.5),), (("a", 0.5), ("b", 0.6)), (("a", 0.0), ("b", 1.0)), (("a", 1.5), ("b", -0.5))]
)
def test_shares_that_do_not_add_up_are_an_error(tmp_path: Path, parts: Any, write: Write) -> None:
    path = write([Document(id="a", text="b")], 1)
    with pytest.raises(SampleError, match="expected numbers above 0 that add up to 1"):
        split(path, tmp_path / "out", parts=parts)


@pytest.mark.parametrize("names", [("a", "a"), ("a/b", "c"), (".a", "c")])
def test_parts_have_names_that_are_folders(tmp_path: Path, names: tuple[str, str], write: Write) -> None:
    with pytest.raises(SampleError, match="each name once"):
        split(write([Document(id="a", text="b")], 1), tmp_path / "out", parts=tuple((n, 0.5) for n in names))


def test_a_document_without_the_key_is_an_error(tmp_path: Path, documents: list[Document], write: Write) -> None:
    with pytest.raises(ShardError, match=r"Document '\w+' has no 'url' in its metadata, only \['n', 'page'\]"):
        split(write(documents, 2), tmp_path / "out", key="url")


def test_the_output_is_the_same_here_and_on_ray(
    tmp_path: Path,
    documents: list[Document],
    write: Write,
    data_below: Any,
    shared_ray: None,
    request: pytest.FixtureRequest,
) -> None:
    path = write(documents, 3)
    on_ray = split(path, tmp_path / "on_ray")
    request.getfixturevalue("in_process")
    assert split(path, tmp_path / "here") == on_ray
    assert data_below(tmp_path / "here") == data_below(tmp_path / "on_ray")
    assert len(list(read_documents(f"{tmp_path}/here/train/{shard_name(0, 3)}"))) > 100
