"""Of equal documents one is kept, the same one for any shards and on any back end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from counted_reads import counted_reads
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets.documents import Document, list_shards, read_documents, shard_name, write_documents
from marin_assets.documents.attributes import Decision, read_attributes
from marin_assets.documents.equal import copies as exact_copies
from marin_assets.documents.equal import groups as exact_groups
from marin_assets.documents.equal import records as exact_records
from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.shard_error import ShardError
from marin_resources.storage.files import stored_files, write_json

TEXTS = st.sampled_from(["a", "b", "A ", "b\n", "", "ß", "SS", "long " * 50])
SOURCES = st.sampled_from(["web", "books", ""])
CORPUS = st.lists(st.lists(st.tuples(TEXTS, SOURCES), max_size=8), min_size=1, max_size=5)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in this process, even if Ray runs for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def write(folder: Path, shards: list[list[tuple[str, str]]]) -> str:
    for number, rows in enumerate(shards):
        documents = (Document(id="same id", text=text, source=source) for text, source in rows)
        write_documents(str(folder / "documents" / shard_name(number, len(shards))), documents)
    return str(folder / "documents")


def run(folder: Path, name: str = "attributes", **fields: Any) -> tuple[dict[str, Any], list[list[Decision]]]:
    config = ExactDuplicatesConfig(documents_path=str(folder / "documents"), output_path=str(folder / name), **fields)
    counts = exact_duplicates(unwrap_versioned_value(config))
    shards = list_shards(str(folder / name))
    return counts, [[decision for _, decision in read_attributes(shard)] for shard in shards]


def expected(shards: list[list[tuple[str, str]]], normalize: str, ranking: tuple[str, ...]) -> list[list[Decision]]:
    """Compute the decisions by the definition, in memory."""
    groups = defaultdict(list)
    for s, rows in enumerate(shards):
        for r, (text, source) in enumerate(rows):
            key = text if normalize == "none" else " ".join(text.split()).casefold()
            groups[key].append((ranking.index(source) if source in ranking else len(ranking), s, r))
    decided = [[Decision(keep=True, value=1)] * len(rows) for rows in shards]
    for places in groups.values():
        for rank, s, r in places:
            keep = (rank, s, r) == min(places)
            decided[s][r] = Decision(keep=keep, reason="" if keep else "exact_duplicate", value=len(places))
    return decided


@settings(max_examples=12, deadline=None)
@given(
    shards=CORPUS,
    normalize=st.sampled_from(["none", "whitespace_and_case"]),
    ranking=st.sampled_from([(), ("books",), ("", "web")]),
)
def test_the_kept_documents_are_those_of_the_definition(
    shards: list[list[tuple[str, str]]], normalize: str, ranking: tuple[str, ...]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), shards)
        counts, decided = run(Path(name), normalize=normalize, source_ranking=ranking)
    assert decided == expected(shards, normalize, ranking)
    decisions = [decision for shard in decided for decision in shard]
    assert counts["documents"] == len(decisions)
    assert counts["kept"] == sum(decision.keep for decision in decisions)
    assert counts["rejected"] == counts["rejected_exact_duplicate"] == len(decisions) - counts["kept"]
    assert counts["groups"] == sum(v.keep and v.value > 1 for v in decisions if v.value)


def test_the_kept_documents_do_not_depend_on_the_shards(tmp_path: Path) -> None:
    rows = [(f"text {i % 37} {i % 11}", "") for i in range(1000)]
    kept = []
    for shards in (1, 3, 60):
        bounds = [len(rows) * i // shards for i in range(shards + 1)]
        write(tmp_path / str(shards), [rows[a:b] for a, b in pairwise(bounds)])
        _, decided = run(tmp_path / str(shards))
        kept.append([decision for shard in decided for decision in shard])
    assert kept[0] == kept[1] == kept[2]
    assert Counter(decision.keep for decision in kept[0])[True] == 37 * 11


@pytest.mark.long
def test_on_ray_and_in_process_the_attributes_are_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    write(tmp_path, [[(f"text {i * s % 50}", "") for i in range(200)] for s in range(7)])
    here = run(tmp_path, "here")
    request.getfixturevalue("shared_ray")
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: True)
    assert run(tmp_path, "ray") == here
    for shard in list_shards(str(tmp_path / "here")):
        assert Path(shard).read_bytes() == (tmp_path / "ray" / Path(shard).name).read_bytes()


def test_one_text_that_is_half_of_the_corpus_needs_no_more_memory_than_its_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = [[(str(i % 3 or i), "") for i in range(s, 500, 3)] for s in range(3)]
    write(tmp_path, shards)
    monkeypatch.setattr(exact_groups, "RANGE_RECORDS", 16)
    monkeypatch.setattr("marin_assets.documents.equal.hashes.RUN_RECORDS", 10)
    monkeypatch.setattr(exact_records, "RUN_RECORDS", 10)
    _, decided = run(tmp_path)
    assert decided == expected(shards, "none", ())


def test_hashes_that_share_their_first_half_are_not_equal() -> None:
    import numpy as np

    rows = [(7, 1, 0), (7, 2, 1), (7, 2, 2), (7, 1, 3), (7, 3, 4), (9, 2, 5), (7, 0, 6)]
    block = np.array(rows, exact_groups.hash_record())
    groups = exact_groups._Groups(iter([block[:3], block[3:]]))
    copies = groups.copies(block)
    assert len(groups) == 2
    assert [tuple(row) for row in copies.tolist()] == [(0, 0, 2, 1), (0, 1, 2, 1), (0, 2, 2, 0), (0, 3, 2, 0)]


def test_the_finished_work_of_a_killed_run_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [[("a", ""), ("b", "")], [("a", "")]])

    def fails(*_: object) -> None:
        raise ValueError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("marin_assets.stages.dedup.exact_documents.Copies", fails)
        with pytest.raises(ShardError, match="killed"):
            run(tmp_path)
    files = sorted((tmp_path / "attributes/.marin/exact").rglob("*.bin"))
    before = [file.stat().st_mtime_ns for file in files]
    with monkeypatch.context() as patch:  # hashing again would raise an error
        patch.setattr("marin_assets.stages.dedup.exact_documents.write_hashes", fails)
        patch.setattr(exact_groups, "write_records", fails)
        _, decided = run(tmp_path)
    assert len(before) == 2 + 16
    assert [[decision.keep for decision in shard] for shard in decided] == [[True, True], [False]]
    assert not (tmp_path / "attributes/.marin/exact").exists()


def test_a_group_reads_its_own_copies_alone_however_many_groups_exist(tmp_path: Path) -> None:
    import numpy as np

    read = {}
    for groups in (10, 1000):
        block = np.zeros(groups, exact_groups.copy_record())
        block["shard"], block["copies"], block["kept"] = np.arange(groups), 2, 1
        folder = tmp_path / str(groups)
        exact_records.write_records(f"{folder}/copies/000000.bin", [block], groups, lambda block: block["shard"])
        listing = exact_records.record_listing(stored_files(f"{folder}/copies"))
        write_json(f"{folder}/copies.json", listing)
        [listed] = stored_files(f"{folder}/copies.json")
        config = exact_copies.DecideConfig(config=None, first_shard=7, group=7, groups=groups, copies=listed)
        with counted_reads() as counts:
            copies = exact_copies.Copies(config)
        assert (copies.of(7, 0), copies.of(8, 0)) == ((2, True), (1, True))
        read[groups] = sum(counts.values())
    assert read[1000] <= read[10] + 2  # digits of the file's size


def test_truncated_records_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [[("a", "")] * 9])
    write_records = exact_records.write_records

    def cut(path: str, *rest: Any) -> int:
        count = write_records(path, *rest)
        Path(path).write_bytes(Path(path).read_bytes()[:-1])
        return count

    monkeypatch.setattr("marin_assets.documents.equal.hashes.write_records", cut)
    with pytest.raises(ShardError, match=r"000000\.bin' is not a complete record file: it ends in"):
        run(tmp_path)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"normalize": "lower"}, "normalize is 'lower', expected one of 'none', 'whitespace_and_case'"),
        ({"source_ranking": ("a", "a")}, r"source_ranking is \('a', 'a'\), expected each source once"),
    ],
)
def test_an_invalid_config_is_an_error(tmp_path: Path, fields: dict[str, Any], sentence: str) -> None:
    write(tmp_path, [[("a", "")]])
    with pytest.raises(ValueError, match=sentence):
        run(tmp_path, **fields)


def test_documents_do_not_change(tmp_path: Path) -> None:
    documents = write(tmp_path, [[("a", "web"), ("a", "books")]])
    before = Path(list_shards(documents)[0]).read_bytes()
    _, decided = run(tmp_path, source_ranking=("books",))
    assert [decision.keep for decision in decided[0]] == [False, True]
    assert Path(list_shards(documents)[0]).read_bytes() == before
    assert [d.source for d in read_documents(list_shards(documents)[0])] == ["web", "books"]


STAGE = """
import random, re, sys
from pathlib import Path
from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.step.values import unwrap_versioned_value
folder, shards = sys.argv[1], int(sys.argv[2])
words = random.Random(0).randbytes(20_000).hex()
for shard in range(shards):
    starts = (random.Random(shard * 10_000 + i).randrange(38_000) for i in range(10_000))
    documents = (Document(id=str(i), text=words[start : start + 400]) for i, start in enumerate(starts))
    write_documents(f"{folder}/documents/{shard_name(shard, shards)}", documents)
config = ExactDuplicatesConfig(documents_path=f"{folder}/documents", output_path=f"{folder}/attributes")
assert exact_duplicates(unwrap_versioned_value(config))["documents"] == shards * 10_000
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.long
def test_ten_times_the_documents_need_no_more_memory(tmp_path: Path) -> None:
    peaks = []
    for shards in (4, 40):
        command = [sys.executable, "-c", STAGE, str(tmp_path / str(shards)), str(shards)]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert peaks[1] <= 1.2 * peaks[0]
