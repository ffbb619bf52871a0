"""Uploads to GCS while it fails: they succeed or leave nothing, and an upload whose response is lost is recognised."""

from __future__ import annotations

import os

import gcsfs
import pytest
from bucket_for_tests import BucketForTests

from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.files import read_bytes, sizes_below, write_bytes
from marin_resources.storage.paths import join

SMALL, LARGE = 5, 33 * 1024**2
"""Uploaded in one request, and in a session of two chunks."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client retries without its pauses, which add up to half a minute."""

    async def no_pause(delay: float) -> None:
        assert delay >= 0

    monkeypatch.setattr(gcsfs.retry.asyncio, "sleep", no_pause)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("size_bytes", [SMALL, LARGE])
@pytest.mark.parametrize("after", [False, True], ids=["before the effect", "after the effect"])
def test_an_upload_whose_answers_are_lost_ends_well(
    gcs_bucket: BucketForTests, impatient: None, size_bytes: int, replace: bool, after: bool
) -> None:
    path, data = join(gcs_bucket.prefix, "a"), os.urandom(size_bytes)
    method = "POST" if size_bytes == SMALL else "PUT"
    gcs_bucket.fail(method=method, match="upload", after=after)
    gcs_bucket.drop(method=method, match="upload", after=after)
    write_bytes(path, data, replace=replace)
    assert gcs_bucket.strikes_left() == 0
    assert read_bytes(path) == data


@pytest.mark.parametrize("size_bytes", [SMALL, LARGE])
def test_another_writers_object_is_recognised_although_the_response_was_lost(
    gcs_bucket: BucketForTests, impatient: None, size_bytes: int
) -> None:
    path = join(gcs_bucket.prefix, "a")
    write_bytes(path, b"other")
    gcs_bucket.fail(method="POST", match="upload", after=True)
    with pytest.raises(FileExistsError, match="already exists with other bytes"):
        write_bytes(path, os.urandom(size_bytes), replace=False)
    assert read_bytes(path) == b"other"


@pytest.mark.parametrize("size_bytes", [SMALL, LARGE])
def test_a_store_that_is_down_is_one_sentence_and_stores_nothing(
    gcs_bucket: BucketForTests, impatient: None, size_bytes: int
) -> None:
    gcs_bucket.fail(method="POST" if size_bytes == SMALL else "PUT", match="upload", times=None)
    with pytest.raises(UnavailableError, match=r"'gs://.*/a' \([\d,]+ bytes\) cannot be uploaded \(HttpError: "):
        write_bytes(join(gcs_bucket.prefix, "a"), bytes(size_bytes))
    gcs_bucket.calm()
    assert sizes_below(gcs_bucket.prefix) == {}
    if size_bytes == LARGE:
        assert [line for line in gcs_bucket.requests() if line.startswith("DELETE") and "upload_id" in line]


def test_a_session_that_the_store_has_dropped_starts_again(gcs_bucket: BucketForTests) -> None:
    data = os.urandom(LARGE)
    gcs_bucket.fail(method="PUT", match="upload_id", status=404)
    write_bytes(join(gcs_bucket.prefix, "a"), data)
    assert read_bytes(join(gcs_bucket.prefix, "a")) == data


def test_the_checksum_is_sent_before_the_bytes(gcs_bucket: BucketForTests) -> None:
    from marin_resources.storage.upload.gcs import GcsObject
    from marin_resources.storage.upload.protocol import Body

    with open(os.devnull, "rb") as nothing:
        body = Body(file=nothing, size_bytes=0, md5=b"not the md5 sum!")
        with pytest.raises(gcsfs.retry.HttpError, match="MD5 hash"):
            GcsObject(join(gcs_bucket.prefix, "a")).put(body, "text/plain", replace=True)
    assert sizes_below(gcs_bucket.prefix) == {}
