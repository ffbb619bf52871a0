"""Near-duplicates of documents in other corpora."""

from __future__ import annotations

from pathlib import Path

import pytest
from near_duplicate_texts import corpus, data, decide, find, table, write_shards

from marin_assets.documents import list_shards
from marin_assets.documents.attributes import read_attributes
from marin_assets.stages.dedup.minhash import MinHashError
from marin_assets.step.values import versioned


def test_documents_with_a_near_duplicate_in_another_corpus_are_those_of_the_union(tmp_path: Path) -> None:
    documents, planted = corpus()
    own = [document for document in documents if not document.id.endswith("-1")]
    known, more = documents[:30], documents[30:55]
    new = [document for document in own if document not in known and document not in more]
    folder = write_shards(tmp_path / "new", new, 4)
    against = {
        "books": versioned(write_shards(tmp_path / "known", known, 2)),
        "web": versioned(write_shards(tmp_path / "more", more, 1)),
    }
    result = find(folder, tmp_path / "clusters", against=against)
    known_ids = {document.id for document in (*known, *more)}
    expected = {document.id for document in new if any(document.id in ids and ids & known_ids for ids in planted)}
    assert expected
    assert (result["documents"], result["documents_against"]) == (len(new), 55)
    assert result["duplicates_against"] == len(expected)
    rows = table(tmp_path / "clusters")
    assert {row["id"] for row in rows if row.get("against")} == expected
    assert {row["id"] for row in rows} <= {document.id for document in new}

    decided = decide(folder, tmp_path / "clusters", tmp_path / "decisions", keep=versioned("longest"))
    rejected = {
        id
        for shard in list_shards(f"{tmp_path}/decisions")
        for id, decision in read_attributes(shard)
        if not decision.keep
    }
    assert expected <= rejected
    alone = [ids - known_ids for ids in planted if not ids & known_ids]
    new_ids = {document.id for document in new}
    assert rejected - expected <= set().union(*alone)
    assert all(len((ids & new_ids) - rejected) == 1 for ids in alone if ids & new_ids)
    assert decided["rejected_near_duplicate"] == len(rejected)


def test_without_other_corpora_nothing_changes_and_their_shards_have_no_effect(tmp_path: Path) -> None:
    documents, _ = corpus()
    folder = write_shards(tmp_path / "new", documents[:50], 2)
    find(folder, tmp_path / "a")
    find(folder, tmp_path / "b", against={})
    assert data(tmp_path / "a") == data(tmp_path / "b")
    find(folder, tmp_path / "c", against={"other": versioned(write_shards(tmp_path / "one", documents[50:], 1))})
    find(folder, tmp_path / "d", against={"else": versioned(write_shards(tmp_path / "five", documents[50:], 5))})
    assert data(tmp_path / "c") == data(tmp_path / "d")


def test_a_name_that_is_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MinHashError, match=r"against has the name '\.\./x'"):
        find(write_shards(tmp_path / "new", corpus()[0]), tmp_path / "out", against={"../x": versioned("/data")})
