"""Where a bucket is, and whether a step may read it from another region."""

from __future__ import annotations

import object_stores
import pytest

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.transfer.foreign_buckets import allowed_buckets, foreign_to
from marin_resources.storage.transfer.locations import is_in


@pytest.mark.parametrize(
    ("location", "region", "expected"),
    [
        ("us-east1", "us-east1", True),
        ("us-east1", "us-east5", False),
        ("us", "us-east5", True),
        ("us", "europe-west4", False),
        ("eu", "europe-west4", True),
        ("nam4", "us-central1", True),
        ("nam4", "us-central2", False),
        ("us-central1+us-west1", "us-west1", True),
    ],
)
def test_a_region_is_in_a_location(location: str, region: str, expected: bool) -> None:
    assert is_in(region, location) is expected


def test_a_bucket_of_another_region_is_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARIN_FOREIGN_BUCKETS", raising=False)
    here, there = object_stores.gcs_bucket("US-EAST5"), object_stores.gcs_bucket("EUROPE-WEST4")
    paths = [f"gs://{here.name}/a", f"gs://{there.name}/b", "/data/c", "s3://other/d"]
    [found] = foreign_to("us-east5", paths)
    assert found.describe() == f"'gs://{there.name}/b', which is in europe-west4"
    monkeypatch.setenv("MARIN_FOREIGN_BUCKETS", f"gs://{there.name}/")
    assert foreign_to("us-east5", paths) == []
    for bucket in (here, there):
        bucket.forget()


def test_a_bucket_whose_place_is_not_known_is_foreign_and_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARIN_FOREIGN_BUCKETS", raising=False)
    bucket = object_stores.gcs_bucket("US-EAST5")
    bucket.fail(method="GET", match=f"/b/{bucket.name}", status=403)
    [found] = foreign_to("us-east5", [f"gs://{bucket.name}/a"])
    assert found.location is None
    assert "whose region cannot be read (" in found.describe()
    assert foreign_to("us-east5", [f"gs://{bucket.name}/a"]) == []
    bucket.forget()


@pytest.mark.parametrize("given", ["gs://a/b", "https://x", "a,b/c"])
def test_what_is_no_name_of_a_bucket_is_a_sentence(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_FOREIGN_BUCKETS", given)
    with pytest.raises(SettingError, match=r"is no bucket\. Write names of buckets between commas"):
        allowed_buckets()
