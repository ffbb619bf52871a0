"""Patterns of places where deliveries arrive."""

from __future__ import annotations

import pytest

from marin_sensors.deliveries.pattern import DeliveryPattern, PatternError


@pytest.mark.parametrize(
    ("path", "base", "folder", "file", "delivery"),
    [
        ("gs://crawls/{drop}/*.warc.gz", "gs://crawls", "2026-01", "2026-01/a.warc.gz", "2026-01"),
        ("gs://b/x/crawl-{drop}/**/*.gz", "gs://b/x", "crawl-7", "crawl-7/a/b/c.gz", "7"),
        ("/data/{drop}/wet/*.gz", "/data", "a b", "a b/wet/1.gz", "a b"),
        ("/data/{drop}.jsonl.zst", "/data", None, "2026.01.jsonl.zst", "2026.01"),
        ("s3://raw/{drop}-*.parquet", "s3://raw", None, "7-00001.parquet", "7"),
        ("deliveries/{drop}/part-?.txt", "deliveries", "x", "x/part-1.txt", "x"),
    ],
)
def test_a_delivery_is_found_in_a_path(path: str, base: str, folder: str | None, file: str, delivery: str) -> None:
    pattern = DeliveryPattern(path)
    assert pattern.base == base
    assert pattern.is_folder == (folder is not None)
    assert pattern.delivery_of_file(file) == delivery
    if folder is not None:
        assert pattern.delivery_of_folder(folder) == delivery
        assert pattern.folder_of(delivery) == f"{base}/{folder}"


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("gs://crawls/{drop}/*.warc.gz", "2026-01/a.warc"),
        ("gs://crawls/{drop}/*.warc.gz", "2026-01/b/a.warc.gz"),
        ("/data/{drop}.jsonl.zst", "a/b.jsonl.zst"),
        ("/data/{drop}.jsonl.zst", "ajsonl.zst"),
    ],
)
def test_other_files_belong_to_no_delivery(path: str, other: str) -> None:
    assert DeliveryPattern(path).delivery_of_file(other) is None


def test_a_home_that_is_not_expanded_is_refused() -> None:
    with pytest.raises(PatternError, match="begins with '~', which is not expanded"):
        DeliveryPattern("~/deliveries/{drop}/*.gz")


@pytest.mark.parametrize("path", ["gs://crawls/*.gz", "", "a/{drop}/{drop}", "gs://*/{drop}/x", None, "a/{dorp}/x"])
def test_a_place_without_deliveries_is_one_sentence(path: str) -> None:
    with pytest.raises(PatternError, match=r"The place of deliveries .* \{drop\}"):
        DeliveryPattern(path)
