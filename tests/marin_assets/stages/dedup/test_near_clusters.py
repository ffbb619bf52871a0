from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from counted_reads import counted_reads
from hypothesis import given
from hypothesis import strategies as st

from marin_assets.stages.dedup import bands, links
from marin_assets.stages.dedup.bands import BLOCK_DOCUMENTS, BandFileError, read_band, write_block
from marin_assets.stages.dedup.by_shard import ShardRecordsError, read_by_shard, write_by_shard
from marin_assets.stages.dedup.clusters import Clusters, clusters_of
from marin_assets.stages.dedup.links import (
    LISTING,
    LinkFileError,
    links_among,
    ranges_for,
    read_links,
    read_listing,
    write_listing,
)
from marin_assets.stages.dedup.minhash import FINEWEB, MinHash
from marin_resources.storage.files import StoredFile, open_atomic

TWO_BANDS = MinHash(bands=2, rows=4)
Pairs = list[tuple[int, int]]


def found(parts: list[Pairs]) -> Clusters:
    return clusters_of([lambda part=part: np.array(part, np.uint64).reshape(-1, 2) for part in parts])  # type: ignore[misc]


def naive(pairs: Pairs) -> dict[int, set[int]]:
    """Compute the clusters by merging sets."""
    of: dict[int, set[int]] = {}
    for a, b in pairs:
        both = of.get(a, {a}) | of.get(b, {b})
        for one in both:
            of[one] = both
    return of


numbers = st.integers(0, 25) | st.integers(0, 2**64 - 1)


@given(st.lists(st.lists(st.tuples(numbers, numbers), max_size=30), max_size=4))
def test_clusters_are_those_of_the_naive_algorithm(parts: list[Pairs]) -> None:
    expected = naive([pair for part in parts for pair in part])
    clusters = found(parts)
    assert clusters.documents.tolist() == sorted(expected)
    assert clusters.clusters.tolist() == [min(expected[d]) for d in sorted(expected)]
    assert clusters.sizes.tolist() == [len(expected[d]) for d in sorted(expected)]


@pytest.mark.parametrize("order", ["up", "down", "mixed"])
def test_a_long_chain_is_one_cluster(order: str) -> None:
    chain = np.stack([np.arange(100_000), np.arange(1, 100_001)], axis=1).astype(np.uint64)
    chain = {"up": chain, "down": chain[::-1], "mixed": np.random.default_rng(0).permutation(chain)}[order]
    clusters = clusters_of([lambda: chain[:60_000], lambda: chain[60_000:]])
    assert set(clusters.clusters.tolist()) == {0}
    assert set(clusters.sizes.tolist()) == {100_001}


def test_of_documents_with_one_key_each_is_linked_to_the_first() -> None:
    keys, documents = np.array([7, 5, 7, 9, 7, 5], np.uint64), np.array([4, 3, 1, 0, 2, 8], np.uint64)
    assert links_among(keys, documents).tolist() == [[3, 8], [1, 2], [1, 4]]


def test_ranges_split_a_band_when_it_is_large() -> None:
    assert ranges_for(10) == [range(256)]
    assert ranges_for(links.RANGE_DOCUMENTS + 1) == [range(128), range(128, 256)]
    assert len(ranges_for(10**12)) == 256


def band_file(folder: Path, count: int) -> tuple[StoredFile, np.ndarray]:
    """Write a file of two bands, as `sign_shard` does."""
    keys = np.random.default_rng(count).integers(0, 2**64, (count, 2), dtype=np.uint64)
    path = f"{folder}/shard.bands"
    with open_atomic(path) as out:
        for start in range(0, count, BLOCK_DOCUMENTS):
            rows = np.arange(start, min(start + BLOCK_DOCUMENTS, count), dtype=np.uint32)
            write_block(out, keys[rows], rows, TWO_BANDS)
    return StoredFile(path=path, name="", size_bytes=Path(path).stat().st_size, stamp=""), keys


@pytest.mark.parametrize("count", [0, 1, 1000, BLOCK_DOCUMENTS, BLOCK_DOCUMENTS + 3])
def test_bands_and_ranges_of_them_are_read_as_they_were_written(tmp_path: Path, count: int) -> None:
    file, keys = band_file(tmp_path, count)
    for band in range(2):
        for slots in (range(256), range(128, 256), range(3, 4)):
            read = {int(row): int(key) for part in read_band(file, TWO_BANDS, band, slots) for key, row in zip(*part)}  # noqa: B905
            wanted = {row: int(key) for row, key in enumerate(keys[:, band].tolist()) if key >> 56 in slots}
            assert read == wanted


@pytest.mark.parametrize(
    ("minhash", "kept_bytes"),
    [(MinHash(bands=2, rows=4, seed=2), None), (FINEWEB, None), (TWO_BANDS, -5), (TWO_BANDS, 40)],
    ids=["another seed", "other bands", "cut short", "a stump"],
)
def test_a_band_file_of_other_settings_or_a_damaged_one_is_refused(
    tmp_path: Path, minhash: MinHash, kept_bytes: int | None
) -> None:
    file, _ = band_file(tmp_path, 100)
    data = Path(file.path).read_bytes()[:kept_bytes]
    Path(file.path).write_bytes(data)
    there = StoredFile(path=file.path, name="", size_bytes=len(data), stamp="")
    with pytest.raises(BandFileError, match=r"is not a band file of these settings"):
        list(read_band(there, minhash, 0))
    if kept_bytes == -5:  # the size that is known from before the damage
        with pytest.raises(BandFileError, match="it ends before"):
            list(read_band(file, minhash, 1))


def test_a_band_file_whose_records_are_not_sorted_is_refused(tmp_path: Path) -> None:
    file, _ = band_file(tmp_path, 100)
    data = bytearray(Path(file.path).read_bytes())
    data[bands.HEADER_BYTES : bands.HEADER_BYTES + 8] = b"\xff" * 8
    Path(file.path).write_bytes(data)
    with pytest.raises(BandFileError, match="not sorted"):
        list(read_band(file, TWO_BANDS, 0))


def test_a_damaged_file_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "links").write_bytes(b"x" * 17)
    with pytest.raises(LinkFileError, match="has 17 bytes"):
        read_links(f"{tmp_path}/links")


def test_records_are_read_back_by_shard(tmp_path: Path) -> None:
    documents = np.array([3, (2 << 32) + 1, (2 << 32) + 5], np.uint64)
    columns = {"size": np.array([7, 8, 9], np.uint32)}
    groups = write_by_shard(f"{tmp_path}/records", [2, 1], documents, columns)
    found = [[shard.tolist() for shard in read_by_shard(group)] for group in groups]
    assert found == [[[(3, 7)], []], [[((2 << 32) + 1, 8), ((2 << 32) + 5, 9)]]]
    again = write_by_shard(f"{tmp_path}/records", [2, 1], documents, columns)
    assert again == groups
    columns["size"][2] = 10
    other = write_by_shard(f"{tmp_path}/records", [2, 1], documents, columns)
    assert (other[0], other[1].digests) != (groups[0], groups[1].digests)
    assert other[0] == groups[0]
    with pytest.raises(ValueError, match="only 2 shards exist"):
        write_by_shard(f"{tmp_path}/fewer", [1, 1], documents, columns)


def test_records_that_were_written_for_another_run_are_refused(tmp_path: Path) -> None:
    documents = np.array([3, 5], np.uint64)
    [group] = write_by_shard(f"{tmp_path}/records", [1], documents, {})
    write_by_shard(f"{tmp_path}/records", [1], documents + np.uint64(1), {})
    with pytest.raises(ShardRecordsError, match=r"Records 0 to 2 of .*records' are not those that this stage wrote"):
        list(read_by_shard(group))


def test_a_shard_reads_its_own_records_alone_however_many_shards_exist(tmp_path: Path) -> None:
    read = {}
    for shards in (10, 1000):
        documents = np.arange(shards, dtype=np.uint64) << np.uint64(32)
        groups = write_by_shard(f"{tmp_path}/{shards}", [1] * shards, documents, {})
        with counted_reads() as counts:
            [[found]] = (list(read_by_shard(group)) for group in groups[7:8])
        assert found["document"].tolist() == [7 << 32]
        read[shards] = sum(counts.values())
    assert read == {10: 8, 1000: 8}


def test_a_range_of_a_band_reads_its_own_starts_and_records_alone(tmp_path: Path) -> None:
    file, _ = band_file(tmp_path, 1000)
    with counted_reads() as counts:
        records = [len(keys) for slot in range(256) for keys, _ in read_band(file, TWO_BANDS, 0, range(slot, slot + 1))]
    assert sum(records) == 1000
    assert sum(counts.values()) == 1000 * bands.RECORD_BYTES + 256 * 2 * bands.START_BYTES


def test_the_list_of_band_files_takes_some_bytes_for_each(tmp_path: Path) -> None:
    files = [(f"part-{i:05d}-of-10000.bands", 2_000 + 12 * (i * i % 977)) for i in range(10_000)]
    write_listing(f"{tmp_path}/{LISTING}", files)
    with counted_reads() as counts:
        listed = read_listing(f"{tmp_path}/{LISTING}")
    assert [(file.path, file.size_bytes) for file in listed] == [(f"{tmp_path}/bands/{name}", s) for name, s in files]
    assert sum(counts.values()) < 10 * len(files)
