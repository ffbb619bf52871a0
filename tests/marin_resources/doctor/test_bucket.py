"""The rules of a bucket, and what they mean for a prefix in it."""

from __future__ import annotations

import object_stores
import pytest
from bucket_for_tests import BucketForTests

from marin_resources.doctor.bucket import assess, look
from marin_resources.doctor.bucket_rules import Bucket, Rule
from marin_resources.doctor.finding import State


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        (Rule(what="deletes", places=(), when="(age 1)"), State.WRONG),
        (Rule(what="deletes", places=("team/",), when=""), State.WRONG),
        (Rule(what="deletes", places=("team/x",), when=""), State.WRONG),
        (Rule(what="deletes", places=("team/x/tmp/",), when=""), State.WARNING),
        (Rule(what="deletes", places=("other/",), when=""), State.OK),
        (Rule(what="deletes", places=("team/x/.marin/logs/",), when="(age 90)"), State.OK),
        (Rule(what="deletes", places=("team/x/.marin/",), when="(age 90)"), State.WARNING),
        (Rule(what="moves to COLDLINE", places=(), when="(age 90)"), State.WARNING),
    ],
)
def test_what_a_rule_means_depends_on_where_the_prefix_is(rule: Rule, state: State) -> None:
    assert [one.state for one in assess(Bucket(name="b", rules=[rule]), "team/x")] == [state]


ABORT = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}}


def deletes(**condition: object) -> dict[str, object]:
    return {"action": {"type": "Delete"}, "condition": condition}


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"lifecycle": {"rule": [deletes(age=30)]}}, State.WRONG),
        ({"lifecycle": {"rule": [deletes(isLive=False)]}}, State.OK),
        ({"lifecycle": {"rule": [deletes(numNewerVersions=3)]}}, State.OK),
        ({"lifecycle": {"rule": [ABORT]}}, State.OK),
        ({"lifecycle": {"rule": [{"action": {"type": "SetStorageClass", "storageClass": "ARCHIVE"}}]}}, State.WARNING),
        ({"versioning": {"enabled": True}}, State.WARNING),
        ({"versioning": {"enabled": True}, "lifecycle": {"rule": [deletes(daysSinceNoncurrentTime=3)]}}, State.OK),
        ({"retentionPolicy": {"retentionPeriod": "86400"}}, State.WRONG),
    ],
)
def test_googles_rules(
    gcs_bucket: BucketForTests, fields: dict[str, object], state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", gcs_bucket.prefix)
    gcs_bucket.change(**fields)
    [finding] = look()
    assert finding.state is state, finding.sentence


def test_rules_that_may_not_be_read_are_a_warning(gcs_bucket: BucketForTests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_PREFIX", gcs_bucket.prefix)
    gcs_bucket.fail(method="GET", status=403, times=None)
    [finding] = look()
    assert finding.state is State.WARNING
    assert "cannot be read (Forbidden" in finding.sentence


def test_amazons_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    prefix = object_stores.s3_prefix()
    monkeypatch.setenv("MARIN_PREFIX", prefix)
    fs = s3fs.S3FileSystem(use_listings_cache=False)
    [uploads] = look()
    assert "keeps the parts of uploads" in uploads.sentence
    rules = [
        {
            "ID": "parts",
            "Status": "Enabled",
            "Filter": {"Prefix": ""},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        },
        {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "prefix/"}, "Expiration": {"Days": 9}},
        {"ID": "off", "Status": "Disabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}},
    ]
    name = prefix.split("/")[2]
    fs.call_s3("put_bucket_lifecycle_configuration", Bucket=name, LifecycleConfiguration={"Rules": rules})
    [old] = look()
    assert old.state is State.WRONG
    assert "deletes 'prefix/' (after 9 days)" in old.sentence
