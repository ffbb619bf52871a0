from __future__ import annotations

import random
import tracemalloc
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from near_duplicate_texts import corpus, data, edited, find, table, text, write_shards

from marin_assets.documents import Document, write_documents
from marin_assets.stages.dedup import links, near_duplicates
from marin_assets.stages.dedup.minhash import ZYDA, MinHash, MinHashError
from marin_resources.ray_tpu.shards.map_shards import ShardError


def clusters(output: Path | str) -> set[frozenset[str]]:
    ids = defaultdict(set)
    for row in table(output):
        ids[row["cluster"]].add(row["id"])
    return set(map(frozenset, ids.values()))


def test_planted_near_duplicates_are_found_and_nothing_else(tmp_path: Path) -> None:
    documents, planted = corpus()
    result = find(write_shards(tmp_path / "documents", documents), tmp_path / "out")
    assert clusters(tmp_path / "out") == set(map(frozenset, planted))
    linked = sum(map(len, planted))
    assert {**result, "links": None} == {
        "documents": len(documents),
        "documents_without_words": 0,
        "links": None,
        "documents_in_clusters": linked,
        "clusters": len(planted),
        "duplicates": linked - len(planted),
        "largest_cluster": 5,
    }


def test_a_row_holds_the_place_and_description_of_its_document(tmp_path: Path) -> None:
    documents, _ = corpus()
    size = -(-len(documents) // 3)
    find(write_shards(tmp_path / "documents", documents), tmp_path / "out")
    rows = table(tmp_path / "out")
    first: dict[int, int] = {}
    for row in rows:
        document = documents[row["shard"] * size + row["row"]]
        assert (row["id"], row["source"], row["characters"]) == (document.id, document.source, len(document.text))
        assert row["cluster"] == first.setdefault(row["cluster"], (row["shard"] << 32) + row["row"])
        assert row["size"] == sum(other["cluster"] == row["cluster"] for other in rows)


def test_a_cluster_is_transitive(tmp_path: Path) -> None:
    """The ends of the chain share almost no text."""
    words = text(random.Random(1), 400).split()
    documents = [Document(id=str(i), text=" ".join(words[i * 10 : i * 10 + 200])) for i in range(20)]
    result = find(write_shards(tmp_path / "documents", documents), tmp_path / "out")
    assert (result["clusters"], result["largest_cluster"]) == (1, 20)


def test_documents_are_identified_by_their_place_and_not_their_id(tmp_path: Path) -> None:
    dice = random.Random(2)
    same = text(dice)
    documents = [
        Document(id="x", text=same),
        Document(id="x", text=text(dice)),
        Document(id="x", text=edited(dice, same)),
    ]
    find(write_shards(tmp_path / "documents", documents, shards=1), tmp_path / "out")
    assert [row["row"] for row in table(tmp_path / "out")] == [0, 2]


def test_short_texts_are_compared_whole_and_texts_without_words_have_no_duplicate(tmp_path: Path) -> None:
    texts = ["Not found.", "", "not found", "Not found here", "...", "", "!"]
    documents = [Document(id=str(i), text=one) for i, one in enumerate(texts)]
    result = find(write_shards(tmp_path / "documents", documents), tmp_path / "out")
    assert clusters(tmp_path / "out") == {frozenset({"0", "2"})}
    assert result["documents_without_words"] == 4


def test_a_corpus_without_near_duplicates_has_an_empty_table(tmp_path: Path) -> None:
    result = find(write_shards(tmp_path / "documents", [Document(id="1", text="a word")], shards=2), tmp_path / "out")
    assert (result["clusters"], result["duplicates"], result["largest_cluster"]) == (0, 0, 0)
    assert table(tmp_path / "out") == []
    assert len(data(tmp_path / "out")) == 2


@pytest.mark.parametrize("shards", [1, 8])
@pytest.mark.parametrize("spread", [False, True], ids=["in order", "dealt out"])
def test_clusters_do_not_depend_on_the_shards(tmp_path: Path, shards: int, spread: bool) -> None:
    documents, planted = corpus()
    find(write_shards(tmp_path / "documents", documents, shards, spread), tmp_path / "out")
    assert clusters(tmp_path / "out") == set(map(frozenset, planted))


@pytest.mark.long
def test_bytes_are_the_same_in_process_and_on_ray(
    shared_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = write_shards(tmp_path / "documents", corpus()[0], 5)
    on_ray = find(documents, tmp_path / "ray")
    with monkeypatch.context() as patch:
        patch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
        assert find(documents, tmp_path / "here") == on_ray
    assert data(tmp_path / "here", hidden=True) == data(tmp_path / "ray", hidden=True)
    assert len(data(tmp_path / "here")) == 5


@pytest.fixture
def killed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the stage without its last act, which removes its hidden files."""
    monkeypatch.setattr(near_duplicates, "remove_folder", lambda path: None)


def test_hidden_files_are_removed_at_the_end(here: None, tmp_path: Path) -> None:
    documents = write_shards(tmp_path / "documents", corpus()[0])
    first = find(documents, tmp_path / "out")
    assert not (tmp_path / "out/.marin/near_duplicates").exists()
    assert find(documents, tmp_path / "out") == first


@pytest.mark.usefixtures("killed_at_the_end")
def test_bytes_are_the_same_however_many_ranges_a_band_is_sorted_in(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = write_shards(tmp_path / "documents", corpus()[0])
    whole = find(documents, tmp_path / "whole")
    monkeypatch.setattr(links, "RANGE_DOCUMENTS", 20)
    assert find(documents, tmp_path / "ranges") == whole
    assert len(list((tmp_path / "ranges/.marin/near_duplicates/links").iterdir())) == 14 * 8
    assert data(tmp_path / "ranges") == data(tmp_path / "whole")


@pytest.mark.usefixtures("killed_at_the_end")
def test_a_failed_stage_resumes(here: None, tmp_path: Path) -> None:
    documents, out = write_shards(tmp_path / "documents", corpus()[0], 4), tmp_path / "out"
    expected = find(documents, tmp_path / "expected")
    third = Path(documents) / "part-00002-of-00004.jsonl.zst"
    sound = third.read_bytes()
    third.write_bytes(sound[:-20])
    with pytest.raises(ShardError, match=r"part-00002-of-00004\.jsonl\.zst' is damaged or truncated"):
        find(documents, out)
    finished = stamps(out)
    third.write_bytes(sound)
    assert find(documents, out) == expected
    assert data(out, hidden=True) == data(tmp_path / "expected", hidden=True)
    assert len(finished) >= 1
    assert finished.items() <= stamps(out).items()


def test_documents_that_change_after_a_kill_are_in_the_table_as_they_are_now(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = corpus(clusters=6, alone=3)[0]
    documents, out, write_rows = (
        write_shards(tmp_path / "documents", planted),
        tmp_path / "out",
        near_duplicates.write_rows,
    )

    def killed(path: str, *rest: Any, **named: Any) -> int:
        if "part-00002" in path:
            raise ValueError("killed")
        return write_rows(path, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(near_duplicates, "write_rows", killed)
        with pytest.raises(ShardError, match="killed"):
            find(documents, out)
    assert len(data(out)) == 2
    write_shards(documents, [planted[-1], *planted[1:-1], planted[0]])
    assert find(documents, out) == find(documents, tmp_path / "fresh")
    assert data(out) == data(tmp_path / "fresh")


@pytest.mark.usefixtures("killed_at_the_end")
@pytest.mark.parametrize("lost", ["links/band-0003-000-256", "bands/part-00001-of-00003.bands", "members.bin"])
def test_lost_files_are_computed_again(here: None, tmp_path: Path, lost: str) -> None:
    documents, out = write_shards(tmp_path / "documents", corpus()[0]), tmp_path / "out"
    expected = find(documents, out)
    before = data(out, hidden=True)
    (out / ".marin/near_duplicates" / lost).unlink()
    assert find(documents, out) == expected
    assert data(out, hidden=True) == before


@pytest.mark.usefixtures("killed_at_the_end")
def test_other_documents_or_settings_over_the_same_output_leave_no_old_files(here: None, tmp_path: Path) -> None:
    documents = write_shards(tmp_path / "documents", corpus()[0])
    find(documents, tmp_path / "out")
    for minhash in (ZYDA, MinHash(seed=2)):
        fresh = find(documents, tmp_path / f"fresh {minhash.seed}", minhash=minhash)
        assert find(documents, tmp_path / "out", minhash=minhash) == fresh
        assert data(tmp_path / "out", hidden=True) == data(tmp_path / f"fresh {minhash.seed}", hidden=True)
    write_shards(documents, corpus(clusters=12)[0])
    fresh = find(documents, tmp_path / "fresh documents")
    find(documents, tmp_path / "out")
    assert find(documents, tmp_path / "out") == fresh
    assert data(tmp_path / "out", hidden=True) == data(tmp_path / "fresh documents", hidden=True)


def test_the_hidden_files_are_not_data(tmp_path: Path) -> None:
    from marin_assets.documents import list_shards

    documents = write_shards(tmp_path / "documents", corpus()[0])
    find(documents, tmp_path / "out")
    assert len(list_shards(f"{tmp_path}/out")) == 3


@pytest.mark.long
def test_memory_does_not_grow_with_the_documents(here: None, tmp_path: Path) -> None:
    def peak(documents: int) -> int:
        dice = random.Random(documents)
        folder = tmp_path / str(documents)
        write_documents(f"{folder}/a.jsonl", [Document(id=str(i), text=text(dice, 40)) for i in range(documents)])
        tracemalloc.start()
        try:
            find(str(folder), tmp_path / f"out {documents}")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # tables and imports
    small = peak(1000)
    assert peak(10_000) < 1.2 * small


def test_settings_out_of_bounds_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(MinHashError, match=r"minhash\.bands is 0"):
        find(write_shards(tmp_path / "documents", corpus()[0]), tmp_path / "out", minhash=MinHash(bands=0))
    assert not (tmp_path / "out").exists()


def stamps(output: Path) -> dict[str, Any]:
    """Return when each band file was written."""
    return {file.name: file.stat().st_mtime_ns for file in (output / ".marin/near_duplicates/bands").iterdir()}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in this process, even if Ray runs for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
