"""A shuffle has the same documents, in an order that depends only on them and the seed."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, list_shards, read_rows, shard_name
from marin_assets.documents.position import SampleError
from marin_assets.stages.sample import runs
from marin_assets.stages.sample.shuffle_documents import ShuffleDocumentsConfig, shuffle_documents
from marin_assets.step.values import unwrap_versioned_value

Write = Callable[[list[Document], int], str]
Read = Callable[[Path], list[Document]]


def shuffle(path: str, output: Path, **changes: Any) -> dict[str, int | float]:
    config = ShuffleDocumentsConfig(documents_path=path, output_path=str(output), **changes)
    return shuffle_documents(unwrap_versioned_value(config))


def rows(documents: list[Document]) -> list[str]:
    return sorted(repr(d.row()) for d in documents)


def test_a_shuffle_has_every_document_once_and_the_same_bytes_for_any_number_of_shards(
    tmp_path: Path, documents: list[Document], write: Write, read: Read, data_below: Any, in_process: None
) -> None:
    found = []
    for shards in (1, 3, 8):
        result = shuffle(write(documents, shards), tmp_path / str(shards), shards=4)
        assert result == {
            "documents": len(documents),
            "bytes": sum(len(d.text.encode()) for d in documents),
            "shards": 4,
            "shards_empty": 0,
            "documents_unaccounted": 0,
        }
        found.append(data_below(tmp_path / str(shards)))
    assert found[0] == found[1] == found[2]
    assert list(found[0]) == [shard_name(i, 4) for i in range(4)]  # the files of the first phase are removed
    shuffled = read(tmp_path / "1")
    assert rows(shuffled) == rows(documents)
    order = [documents.index(d) for d in shuffled]
    ascents = sum(a < b for a, b in itertools.pairwise(order))
    assert abs(ascents / len(order) - 0.5) < 0.03  # as many ascents as descents
    assert max(abs(4 * len(list(read_rows(p))) / len(order) - 1) for p in list_shards(str(tmp_path / "1"))) < 0.2


def test_the_order_depends_on_the_seed_and_not_on_the_number_of_shards(
    tmp_path: Path, documents: list[Document], write: Write, read: Read
) -> None:
    path = write(documents, 2)
    for name, changes in {"one": {"shards": 1}, "many": {"shards": 50}, "seed": {"shards": 1, "seed": 7}}.items():
        shuffle(path, tmp_path / name, **changes)
    assert read(tmp_path / "one") == read(tmp_path / "many")
    assert read(tmp_path / "one") != read(tmp_path / "seed")
    assert rows(read(tmp_path / "one")) == rows(read(tmp_path / "seed"))


def test_full_runs_are_merged(
    tmp_path: Path,
    documents: list[Document],
    write: Write,
    data_below: Any,
    in_process: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write(documents, 2)
    shuffle(path, tmp_path / "one_run", shards=3)
    monkeypatch.setattr(runs, "RUN_BYTES", 20_000)
    shuffle(path, tmp_path / "many_runs", shards=3)
    assert data_below(tmp_path / "many_runs") == data_below(tmp_path / "one_run")


def test_repeated_ids_hard_texts_and_empty_shards_are_kept(tmp_path: Path, write: Write, read: Read) -> None:
    hard = ["\n\r\x0b\x0c\x1c\u2028\u2029\x85", "", "\U0010ffff", '"\\', "twin", "twin"]
    texts = [Document(id="a", text=text, metadata={"k": [1, {"é": None}]}) for text in hard]
    result = shuffle(write(texts, 3), tmp_path / "out", shards=5)
    assert (result["documents"], result["shards_empty"], result["documents_unaccounted"]) == (6, 4, 0)
    assert rows(read(tmp_path / "out")) == rows(texts)


def test_a_killed_shuffle_resumes_to_the_same_bytes(
    tmp_path: Path,
    documents: list[Document],
    write: Write,
    data_below: Any,
    in_process: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write(documents, 3)
    shuffle(path, tmp_path / "whole", shards=4)
    written: list[str] = []
    write_lines = runs.write_lines

    def die_at_the_third(path: str, lines: Any) -> None:
        written.append(Path(path).name)
        if len(written) == 3:
            raise KeyboardInterrupt
        write_lines(path, lines)

    monkeypatch.setattr("marin_assets.stages.sample.shuffle_documents.write_lines", die_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        shuffle(path, tmp_path / "killed", shards=4)
    assert shuffle(path, tmp_path / "killed", shards=4)["documents"] == len(documents)
    assert len(written) == len(set(written)) + 1 == 5  # the two finished ones are not written again
    assert data_below(tmp_path / "killed") == data_below(tmp_path / "whole")


def test_shards_too_large_to_sort_are_refused_before_they_are_read(
    tmp_path: Path, documents: list[Document], write: Write, monkeypatch: pytest.MonkeyPatch, in_process: None
) -> None:
    monkeypatch.setattr("marin_assets.stages.sample.shuffle_documents.MAX_SHARD_BYTES", 1000)
    with pytest.raises(
        SampleError, match=r"would have [\d,]+ bytes, expected at most 1,000, .* more than shards=2: 1 make"
    ):
        shuffle(write(documents, 2), tmp_path / "out", shards=2)


@pytest.mark.parametrize("shards", [0, -1, 2.5, True])
def test_an_invalid_number_of_shards_is_an_error(tmp_path: Path, write: Write, shards: Any) -> None:
    with pytest.raises(SampleError, match="expected a whole number of at least 1"):
        shuffle(write([Document(id="a", text="b")], 1), tmp_path / "out", shards=shards)


def test_the_output_is_the_same_here_and_on_ray(
    tmp_path: Path,
    documents: list[Document],
    write: Write,
    data_below: Any,
    shared_ray: None,
    request: pytest.FixtureRequest,
) -> None:
    path = write([*documents, dataclasses.replace(documents[0], text="a twin")], 3)
    on_ray = shuffle(path, tmp_path / "on_ray", shards=4)
    request.getfixturevalue("in_process")
    assert shuffle(path, tmp_path / "here", shards=4) == on_ray
    assert data_below(tmp_path / "here") == data_below(tmp_path / "on_ray")
