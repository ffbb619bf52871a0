"""The doctor looks whether each bucket of a fleet is where its clusters are."""

from __future__ import annotations

from pathlib import Path

import object_stores
import pytest
from fleets import use, write_catalogue

from marin_resources.doctor.cluster import look


def test_a_bucket_that_is_elsewhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"central": "US-CENTRAL2", "east": "EUROPE-WEST4", "west": "US"}
    buckets = {name: object_stores.gcs_bucket(location) for name, location in places.items()}
    catalogue = write_catalogue(
        tmp_path,
        **{name: bucket.prefix for name, bucket in buckets.items()},
        **{f"of_{name}": 'address = "http://127.0.0.1:1"' for name in places},
    )
    use(catalogue, monkeypatch)
    monkeypatch.setenv("MARIN_PREFIX", buckets["central"].prefix)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "x" * 32)
    found = [finding for finding in look() if finding.subject == "region"]
    assert [finding.state for finding in found] == ["ok", "wrong", "ok"]
    assert found[1].sentence == (
        f"The bucket {buckets['east'].name!r} is in europe-west4, and the cluster 'east' in us-east5: all that its "
        "steps read and write leaves the region. Correct prefix or zone in the catalogue."
    )
    for bucket in buckets.values():
        bucket.forget()
