"""Faults of a bucket: errors, lost connections and lost responses, before and after the effect of a write.

A control file is then written once or not at all, and whoever writes it knows which, or knows that it does not know.
"""

from __future__ import annotations

import asyncio
import time
import types
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import fsspec
import object_stores
import pytest
import requests
from bucket_for_tests import BucketForTests
from dropping_proxy import DroppingProxy

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError, UnavailableError

pytestmark = pytest.mark.skipif(bool(object_stores.REAL_GCS_PREFIX), reason="a real bucket fails when it likes")

ERRORS = [429, 500, 503]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """gcsfs tries six times, with pauses of up to half a minute: here without pauses."""

    async def no_pause(seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr("gcsfs.retry.asyncio", types.SimpleNamespace(sleep=no_pause))


def body() -> bytes:
    """As in every control file that decides anything, no two are equal."""
    return uuid.uuid4().bytes


def content(path: str) -> bytes | None:
    found = control.read(path)
    return found.data if found else None


def writes(bucket: BucketForTests) -> int:
    return sum(line.startswith("POST /upload/") for line in bucket.requests())


@pytest.mark.parametrize("status", ERRORS)
def test_a_write_that_was_refused_for_a_while_is_retried(gcs_bucket: BucketForTests, status: int) -> None:
    path, data = f"{gcs_bucket.prefix}/a", body()
    gcs_bucket.fail(method="POST", match="prefix/a", status=status, times=3)
    generation = control.write(path, data, expected=None)
    assert control.read(path) == control.Snapshot(data, generation)
    assert (writes(gcs_bucket), gcs_bucket.strikes_left()) == (4, 0)


@pytest.mark.parametrize("status", ERRORS)
def test_a_write_whose_answer_was_an_error_is_recognised_as_done(gcs_bucket: BucketForTests, status: int) -> None:
    """The second try finds the object of the first."""
    path, data = f"{gcs_bucket.prefix}/a", body()
    gcs_bucket.fail(method="POST", match="prefix/a", status=status, after=True)
    generation = control.write(path, data, expected=None)
    assert control.read(path) == control.Snapshot(data, generation)
    assert writes(gcs_bucket) == 2


@pytest.mark.parametrize("after", [False, True])
def test_a_write_whose_connection_was_lost_is_done_once(gcs_bucket: BucketForTests, after: bool) -> None:
    path, first, data = f"{gcs_bucket.prefix}/a", body(), body()
    old = control.write(path, first, expected=None)
    gcs_bucket.drop(method="POST", match="prefix/a", after=after)
    generation = control.write(path, data, expected=old)
    assert control.read(path) == control.Snapshot(data, generation)
    assert gcs_bucket.strikes_left() == 0


def test_a_lost_write_that_another_writer_overwrote_is_a_conflict(gcs_bucket: BucketForTests) -> None:
    path, mine, theirs = f"{gcs_bucket.prefix}/a", body(), body()
    gcs_bucket.drop(method="POST", match="prefix/a", after=True, delay_s=2.0)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(control.write, path, mine, expected=None)
        while (found := control.read(path)) is None:
            time.sleep(0.01)
        now = control.write(path, theirs, expected=found.generation)
        with pytest.raises(ConflictError):
            writing.result()
    assert control.read(path) == control.Snapshot(theirs, now)


def test_a_conflict_is_reported_although_its_response_was_lost(gcs_bucket: BucketForTests) -> None:
    path, theirs = f"{gcs_bucket.prefix}/a", body()
    control.write(path, theirs, expected=None)
    gcs_bucket.drop(method="POST", match="prefix/a", after=True)
    with pytest.raises(ConflictError, match="was changed by another process"):
        control.write(path, body(), expected=None)
    assert content(path) == theirs


def test_a_bucket_that_refuses_for_good_is_unavailable_and_nothing_is_written(gcs_bucket: BucketForTests) -> None:
    path = f"{gcs_bucket.prefix}/a"
    gcs_bucket.fail(match="prefix/a", status=503, times=None)
    with pytest.raises(UnavailableError):
        control.write(path, body(), expected=None)
    with pytest.raises(UnavailableError, match="cannot be read"):
        control.read(path)
    gcs_bucket.calm()
    assert content(path) is None


def test_a_write_whose_responses_are_all_lost_is_recognised_by_reading(gcs_bucket: BucketForTests) -> None:
    path, data = f"{gcs_bucket.prefix}/a", body()
    gcs_bucket.fail(method="POST", match="prefix/a", status=503, after=True, times=None)
    generation = control.write(path, data, expected=None)
    assert control.read(path) == control.Snapshot(data, generation)


def test_a_read_is_retried(gcs_bucket: BucketForTests) -> None:
    path, data = f"{gcs_bucket.prefix}/a", body()
    control.write(path, data, expected=None)
    gcs_bucket.drop(method="GET", match="prefix/a")
    gcs_bucket.fail(method="GET", match="prefix/a", status=503)
    assert content(path) == data
    assert gcs_bucket.strikes_left() == 0


def test_a_control_file_is_read_and_written_without_a_listing(gcs_bucket: BucketForTests) -> None:
    path = f"{gcs_bucket.prefix}/a"
    assert control.read(path) is None
    control.write(path, body(), expected=control.write(path, body(), expected=None))
    control.read(path)
    assert gcs_bucket.listings() == []
    assert [line.split()[0] for line in gcs_bucket.requests()] == ["GET", "POST", "POST", "GET"]


def test_a_large_file_whose_chunks_fail_on_the_way_is_whole_in_the_end(gcs_bucket: BucketForTests) -> None:
    path, data = f"{gcs_bucket.prefix}/a", uuid.uuid4().bytes * 800_000
    gcs_bucket.fail(method="POST", match="upload_id", status=503)
    gcs_bucket.drop(method="POST", match="upload_id")
    gcs_bucket.fail(method="POST", match="upload_id", status=503, after=True)
    fs = fsspec.filesystem("gs", use_listings_cache=False)
    with fs.open(path, "wb") as file:
        for start in range(0, len(data), 1_000_000):
            file.write(data[start : start + 1_000_000])
    assert fs.cat_file(path) == data
    assert gcs_bucket.strikes_left() == 0


def test_a_large_file_whose_last_answer_is_lost_is_written_once(gcs_bucket: BucketForTests) -> None:
    path, data = f"{gcs_bucket.prefix}/a", bytes(6_000_000)
    fs = fsspec.filesystem("gs", use_listings_cache=False)
    with fs.open(path, "xb") as file:
        file.write(data)
        gcs_bucket.drop(method="POST", match="upload_id", after=True)
    assert fs.info(path)["size"] == len(data)
    assert gcs_bucket.strikes_left() == 0


def test_faults_strike_the_requests_that_they_are_meant_for(gcs_bucket: BucketForTests) -> None:
    with ExitStack() as stack:
        other = object_stores.gcs_bucket()
        stack.callback(other.forget)
        gcs_bucket.fail(method="POST", match="prefix/a", status=503, times=None)
        control.write(f"{other.prefix}/a", b"x", expected=None)
        control.write(f"{gcs_bucket.prefix}/b", b"x", expected=None)
        assert control.read(f"{gcs_bucket.prefix}/a") is None
        fs = fsspec.filesystem("gs", use_listings_cache=False)
        with pytest.raises(Exception, match="internal error"):
            fs.pipe_file(f"{gcs_bucket.prefix}/a", b"the name is in the body alone")


def test_a_fault_strikes_by_chance_and_always_the_same_with_the_same_seed(gcs_bucket: BucketForTests) -> None:
    def struck(name: str) -> list[int]:
        gcs_bucket.fail(match=name, status=503, times=None, probability=0.3, seed=7)
        url = f"{object_stores.GCS_URL}/storage/v1/b/{gcs_bucket.name}/o/{name}"
        return [number for number in range(100) if requests.get(url, timeout=60).status_code == 503]

    assert struck("first") == struck("second")
    assert 15 < len(struck("third")) < 45


def test_an_answer_is_late(gcs_bucket: BucketForTests) -> None:
    gcs_bucket.delay(0.3, method="GET", match="prefix/a")
    began = time.monotonic()
    assert control.read(f"{gcs_bucket.prefix}/a") is None
    assert time.monotonic() - began >= 0.3


@pytest.fixture
def s3_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[DroppingProxy]:
    """Between s3fs and its server."""
    import s3fs

    proxy = DroppingProxy(object_stores.S3_URL)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    s3fs.S3FileSystem.clear_instance_cache()  # instances keep the address of their server
    yield proxy
    s3fs.S3FileSystem.clear_instance_cache()
    proxy.close()


@pytest.mark.parametrize("after", [False, True])
def test_on_s3_a_write_whose_connection_was_lost_is_done_once(s3_proxy: DroppingProxy, after: bool) -> None:
    path, data = f"{object_stores.s3_prefix()}/a", body()
    s3_proxy.requests.clear()
    s3_proxy.drop(method="PUT", after=after)
    generation = control.write(path, data, expected=None)
    assert control.read(path) == control.Snapshot(data, generation)
    assert sum(line.startswith("PUT") for line in s3_proxy.requests) == 2


def test_on_s3_a_conflict_is_reported_although_its_response_was_lost(s3_proxy: DroppingProxy) -> None:
    path, theirs = f"{object_stores.s3_prefix()}/a", body()
    old = control.write(path, body(), expected=None)
    control.write(path, theirs, expected=old)
    s3_proxy.drop(method="PUT", after=True)
    with pytest.raises(ConflictError):
        control.write(path, body(), expected=old)
    assert content(path) == theirs
