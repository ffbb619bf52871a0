from __future__ import annotations

import dataclasses
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from near_duplicate_texts import Documents, corpus, data, decide, edited, find, table, text, write_shards

from marin_assets.documents import Document
from marin_assets.documents.attributes import Decision, write_attributes
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig
from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
from marin_assets.stages.dedup.keep_policy import KeepPolicy, KeepPolicyError, best, record
from marin_assets.step.values import VersionedValue, unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError


@dataclasses.dataclass(frozen=True)
class Nothing:
    pass


def quality(document: Document) -> float:
    return zlib.crc32(document.id.encode()) % 7


def score_by_quality(config: Nothing) -> Callable[[Document], Decision]:
    return lambda document: Decision(keep=True, value=quality(document))


def no_score(config: Nothing) -> Callable[[Document], Decision]:
    return lambda document: Decision(keep=True)


@pytest.fixture(autouse=True)
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in this process, even if Ray runs for other tests."""
    if "shared_ray" not in request.fixturenames:
        monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def decided(
    folder: Path, documents: Documents, shards: int = 3, spread: bool = False, **changes: Any
) -> dict[str, Any]:
    """Find and decide. Return the result, with the kept ids."""
    path = write_shards(folder / "documents", documents, shards, spread)
    if changes.get("keep") == "highest":
        write_attributes(path, f"{folder}/quality", score_by_quality, Nothing())
        changes["attributes_path"] = f"{folder}/quality"
    find(path, folder / "clusters")
    result = decide(path, folder / "clusters", folder / "out", **changes)
    return {**result, "ids": {row["id"] for row in table(folder / "out") if row["keep"]}}


def test_one_document_of_each_cluster_is_kept_and_every_document_is_accounted_for(tmp_path: Path) -> None:
    documents, planted = corpus()
    result = decided(tmp_path, documents)
    for cluster in planted:
        assert len(result["ids"] & cluster) == 1
    assert {d.id for d in documents} - result["ids"] <= set().union(*planted)
    rejected = sum(map(len, planted)) - len(planted)
    assert {**result, "ids": None} == {
        "documents": len(documents),
        "kept": len(documents) - rejected,
        "rejected": rejected,
        "rejected_near_duplicate": rejected,
        "clusters": len(planted),
        "ids": None,
    }


def test_attributes_hold_the_size_of_the_cluster_in_the_documents_order(tmp_path: Path) -> None:
    documents, planted = corpus()
    decided(tmp_path, documents)
    size = {id: len(cluster) for cluster in planted for id in cluster}
    rows = table(tmp_path / "out")
    assert [row["id"] for row in rows] == [d.id for d in documents]
    assert [row["value"] for row in rows] == [size.get(d.id, 1) for d in documents]
    assert {row["reason"] for row in rows if not row["keep"]} == {"near_duplicate"}
    assert {row["reason"] for row in rows if row["keep"]} == {""}


def wanted(documents: Documents, cluster: set[str], rank: Callable[[Document], Any]) -> set[str]:
    """Return the ids that rank lowest, one of which must be kept."""
    members = [d for d in documents if d.id in cluster]
    lowest = min(map(rank, members))
    return {d.id for d in members if rank(d) == lowest}


@pytest.mark.parametrize("sources", [(), ("s2", "s1")])
@pytest.mark.parametrize("keep", ["first", "longest", "highest"])
def test_the_policy_decides_which_document_is_kept(tmp_path: Path, keep: str, sources: tuple[str, ...]) -> None:
    documents, planted = corpus()
    result = decided(tmp_path, documents, keep=keep, sources=sources)

    def rank(document: Document) -> tuple[float, float]:
        source = sources.index(document.source) if document.source in sources else len(sources)
        orders = {"first": documents.index(document), "longest": -len(document.text), "highest": -quality(document)}
        return source, orders[keep]

    for cluster in planted:
        assert result["ids"] & cluster <= wanted(documents, cluster, rank)


@pytest.mark.parametrize("keep", ["longest", "highest"])
def test_the_order_of_the_documents_does_not_matter_to_longest_and_highest(tmp_path: Path, keep: str) -> None:
    documents, _ = corpus()
    mixed = random.Random(9).sample(documents, len(documents))
    ways = [
        decided(tmp_path / "1", documents, shards=1, keep=keep),
        decided(tmp_path / "3", documents, shards=3, keep=keep, spread=True),
        decided(tmp_path / "8", mixed, shards=8, keep=keep),
    ]
    assert ways[0] == ways[1] == ways[2]


def test_first_keeps_the_same_documents_in_any_number_of_shards(tmp_path: Path) -> None:
    ways = [decided(tmp_path / str(shards), corpus()[0], shards, keep="first") for shards in (1, 3, 8)]
    assert ways[0] == ways[1] == ways[2]


def test_of_equal_texts_the_first_is_kept(tmp_path: Path) -> None:
    same = text(random.Random(4))
    documents = [Document(id=f"copy{i}", text=same) for i in range(6)]
    for i in range(4):
        order = [*documents[i:], *documents[:i]]
        assert decided(tmp_path / str(i), order, keep="longest")["ids"] == {f"copy{i}"}


def test_a_document_without_a_value_is_lowest_and_one_is_kept_without_any_value(tmp_path: Path) -> None:
    documents, planted = corpus()
    path = write_shards(tmp_path / "documents", documents)
    write_attributes(path, f"{tmp_path}/none", no_score, Nothing())
    find(path, tmp_path / "clusters")
    result = decide(path, tmp_path / "clusters", tmp_path / "out", keep="highest", attributes_path=f"{tmp_path}/none")
    assert result["kept"] == len(documents) - sum(map(len, planted)) + len(planted)


@pytest.mark.long
def test_bytes_are_the_same_in_process_and_on_ray(
    shared_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = write_shards(tmp_path / "documents", corpus()[0], 5)
    find(documents, tmp_path / "clusters")
    on_ray = decide(documents, tmp_path / "clusters", tmp_path / "ray", keep="longest")
    with monkeypatch.context() as patch:
        patch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
        assert decide(documents, tmp_path / "clusters", tmp_path / "here", keep="longest") == on_ray
    assert data(tmp_path / "here", hidden=True) == data(tmp_path / "ray", hidden=True)
    assert len(data(tmp_path / "here")) == 5


def test_another_policy_over_the_same_output_replaces_the_decisions(tmp_path: Path) -> None:
    documents = write_shards(tmp_path / "documents", corpus()[0])
    find(documents, tmp_path / "clusters")
    for keep in ("first", "longest"):
        decide(documents, tmp_path / "clusters", tmp_path / "out", keep=keep)
        decide(documents, tmp_path / "clusters", tmp_path / keep, keep=keep)
        assert data(tmp_path / "out", hidden=True) == data(tmp_path / keep, hidden=True)
    assert data(tmp_path / "first") != data(tmp_path / "longest")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"keep": "best"}, "keep is 'best', expected one of 'first', 'longest', 'highest'"),
        ({"keep": "highest"}, "'highest' needs attributes to compare"),
        ({"keep": "first", "attributes_path": "x"}, "the other policies take none"),
        ({"sources": ("a", "b", "a")}, r"sources are \('a', 'b', 'a'\), expected each source once"),
    ],
)
def test_an_invalid_policy_is_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(KeepPolicyError, match=sentence):
        decide(write_shards(tmp_path / "documents", corpus()[0]), tmp_path / "none", tmp_path / "out", **changes)


def test_clusters_of_other_documents_are_refused(tmp_path: Path) -> None:
    documents, _ = corpus()
    path = write_shards(tmp_path / "documents", documents)
    find(path, tmp_path / "clusters")
    other = write_shards(tmp_path / "more shards", documents, shards=4)
    with pytest.raises(ValueError, match=r"has 3 shards, .*more shards' has 4: they belong to other documents"):
        decide(other, tmp_path / "clusters", tmp_path / "out")
    other = write_shards(tmp_path / "reversed", documents[::-1])
    with pytest.raises(ShardError, match=r"in row \d+ of .*reversed/part-00000.*they belong to other documents"):
        decide(other, tmp_path / "clusters", tmp_path / "out")
    other = write_shards(tmp_path / "fewer", documents[:30])
    with pytest.raises(ShardError, match="they belong to other documents"):
        decide(other, tmp_path / "clusters", tmp_path / "out")
    write_attributes(other, f"{tmp_path}/quality", score_by_quality, Nothing())
    with pytest.raises(ShardError, match=r"quality/part-00000-of-00003\.jsonl\.zst' has '.*they belong to other"):
        decide(path, tmp_path / "clusters", tmp_path / "out", keep="highest", attributes_path=f"{tmp_path}/quality")


def test_a_table_that_is_not_a_cluster_table_is_refused(tmp_path: Path) -> None:
    path = write_shards(tmp_path / "documents", corpus()[0])
    with pytest.raises(ShardError, match="line 1 is not a row of a cluster table"):
        decide(path, path, tmp_path / "out")


def test_the_best_are_the_same_in_any_number_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(0)
    records = np.zeros(1000, record())
    records["cluster"], records["order"] = dice.integers(0, 50, 1000), dice.integers(0, 3, 1000)
    records["document"] = dice.permutation(1000)
    whole = best([records]).tolist()
    monkeypatch.setattr("marin_assets.stages.dedup.keep_policy.MIN_MERGED", 10)
    assert best(np.array_split(records, 37)).tolist() == whole
    assert len(whole) == len(set(records["cluster"].tolist()))
    assert best([]).tolist() == []


def test_the_policy_is_in_the_version_of_the_step() -> None:
    config = DecideNearDuplicatesConfig(documents_path="d", clusters_path="c")
    assert isinstance(config.keep, VersionedValue)
    assert isinstance(config.sources, VersionedValue)
    assert KeepPolicy(keep="first", sources=(), attributes_path=None).keep == "first"


def test_near_duplicates_of_different_sources_are_kept_by_the_ranking(tmp_path: Path) -> None:
    dice = random.Random(6)
    original = text(dice)
    texts = {"web": original + " and more", "books": original, "forum": edited(dice, original)}
    documents = [Document(id=source, text=one, source=source) for source, one in texts.items()]
    result = decided(tmp_path, documents, keep="longest", sources=("books", "forum"))
    assert result["ids"] == {"books"}


@pytest.mark.parametrize("keep", ["first", "longest"])
def test_no_cluster_is_lost_between_exact_and_near_duplicates(tmp_path: Path, keep: str) -> None:
    texts = [document.text for document in corpus()[0]]
    twins = [Document(id=f"twin {i}", text=text) for i, text in enumerate([*texts, *texts[::2], *texts[::3]])]
    near = decided(tmp_path, twins, keep=keep)["ids"]
    exact = ExactDuplicatesConfig(documents_path=f"{tmp_path}/documents", output_path=f"{tmp_path}/exact")
    exact_duplicates(unwrap_versioned_value(exact))
    both = near & {row["id"] for row in table(tmp_path / "exact") if row["keep"]}
    clusters: dict[int, set[str]] = {}
    for row in table(tmp_path / "clusters"):
        clusters.setdefault(row["cluster"], set()).add(row["id"])
    assert len(clusters) > 10
    assert all(members & both for members in clusters.values())
