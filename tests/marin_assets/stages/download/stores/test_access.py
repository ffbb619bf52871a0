"""Rights at a store arrive there with every request, and enter no version."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import object_stores
import pytest
import slow_download
from bucket_for_tests import BucketForTests
from moto_s3 import PAID, PUBLIC
from slow_download import download

from marin_assets.defaults import StoreAccess, default_download
from marin_assets.stages.download.files import SourceError, list_source
from marin_assets.stages.download.stores.access import AccessError
from marin_assets.step.graph import build_graph
from marin_resources.storage.files import write_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of

CONTENT = bytes(range(256)) * 400


def bucket_of_s3(kind: str) -> str:
    """A prefix in a bucket of the kind, with two files."""
    prefix = object_stores.s3_prefix(kind)
    for name in ("a.bin", "sub/b.bin"):
        fs, place = filesystem_of(f"{prefix}/raw/{name}")
        bucket, _, key = place.partition("/")
        fs.call_s3("put_object", Bucket=bucket, Key=key, Body=CONTENT, ACL="public-read")
    return f"{prefix}/raw"


@pytest.fixture
def paid_bucket(gcs_bucket: BucketForTests) -> BucketForTests:
    for name in ("a.bin", "sub/b.bin"):
        write_bytes(f"{gcs_bucket.prefix}/raw/{name}", CONTENT)
    gcs_bucket.change(billing={"requesterPays": True})
    return gcs_bucket


def test_a_bucket_of_gcs_whose_requester_pays_is_refused_in_a_sentence(
    paid_bucket: BucketForTests, output: Path
) -> None:
    for source in ("raw", "raw/a.bin", "raw/**/*.bin"):
        with pytest.raises(SourceError, match=r"whose requester pays, and no project is named\. Set requester_pays"):
            download(f"{paid_bucket.prefix}/{source}", str(output))


def test_the_project_that_pays_is_named_in_every_request(paid_bucket: BucketForTests, output: Path) -> None:
    before = paid_bucket.requests_made()
    result = download(f"{paid_bucket.prefix}/raw", str(output), requester_pays=True, user_project="my-project")
    assert (output / "sub/b.bin").read_bytes() == CONTENT
    assert result["files"] == 2
    requests = paid_bucket.requests()[before:]
    assert requests
    assert all("userProject=my-project" in request for request in requests)


def test_a_bucket_of_s3_whose_requester_pays_is_read(output: Path) -> None:
    source = bucket_of_s3(PAID)
    with pytest.raises(SourceError, match=r"cannot be listed: .*requester_pays=True of StoreAccess"):
        download(source, str(output))
    assert download(source, str(output), requester_pays=True)["files"] == 2
    assert (output / "sub/b.bin").read_bytes() == CONTENT


def test_a_public_bucket_of_s3_is_read_without_credentials(output: Path) -> None:
    source = bucket_of_s3(PUBLIC)
    with pytest.raises(SourceError, match=r"cannot be listed: .*anonymous=True"):
        download(source, str(output))
    assert download(source, str(output), anonymous=True)["files"] == 2
    assert (output / "sub/b.bin").read_bytes() == CONTENT


def test_a_public_bucket_of_gcs_is_read_without_credentials(
    gcs_bucket: BucketForTests, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In processes of their own, whose credentials are a token."""
    write_bytes(f"{gcs_bucket.prefix}/raw/a.bin", CONTENT)
    monkeypatch.setenv("FSSPEC_GS_TOKEN", "a-token")
    monkeypatch.setenv("FETCH_RAW_TOKEN_EXPIRY", "false")  # gcsfs requests it from Google
    before = gcs_bucket.requests_with_credentials()
    for anonymous, sends in ((False, True), (True, False)):
        place = output / str(anonymous)
        given = {"source": f"{gcs_bucket.prefix}/raw", "output_path": str(place), "nap_s": 0}
        config = json.dumps({**given, "anonymous": anonymous})
        subprocess.run([sys.executable, slow_download.__file__, config], check=True, stdout=subprocess.DEVNULL)
        assert (place / "a.bin").read_bytes() == CONTENT
        now = gcs_bucket.requests_with_credentials()
        assert (now > before) is sends
        before = now


@pytest.mark.parametrize(
    ("source", "fields", "sentence"),
    [
        ("gs://b/x", {"anonymous": True, "requester_pays": True}, "are both True, and nobody would pay"),
        ("gs://b/x", {"user_project": "p"}, "user_project is 'p', which pays only with requester_pays=True"),
        ("s3://b/x", {"user_project": "p", "requester_pays": True}, "'s3://b/x' is not in GCS"),
        ("https://a.org/x", {"anonymous": True}, r"anonymous is True, and 'https://a\.org/x' is not in S3 or GCS"),
        ("/data/x", {"requester_pays": True}, "requester_pays is True, and '/data/x' is not in S3 or GCS"),
        ("https://a.org/x", {"max_requests_per_s": 0.0}, r"max_requests_per_s is 0\.0, expected a number above 0"),
        ("https://a.org/x", {"max_connections": -1}, "max_connections is -1, expected a number above 0"),
    ],
)
def test_rights_that_cannot_be_used_are_refused_when_the_step_is_created(
    source: str, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(AccessError, match=f"^Step 'raw/x': .*{sentence}"):
        default_download("x", source, access=StoreAccess(**fields))


def test_a_wrong_type_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="max_connections"):
        default_download("x", "gs://b/x", access=StoreAccess(max_connections="8"))  # type: ignore[arg-type]


def test_neither_rights_nor_a_file_of_checksums_enter_the_version() -> None:
    def version_of(**fields: Any) -> str:
        step = default_download("x", "gs://b/x", **fields)
        return build_graph([step])[step].version.hash

    plain = version_of()
    paid = StoreAccess(requester_pays=True, user_project="p", max_requests_per_s=3.0, range_bytes=1)
    assert version_of(access=paid, checksum_file="gs://b/SHA256SUMS", allow_unchecked=True) == plain
    assert version_of(expected_sha256={"a": "0" * 64}) != plain


@pytest.mark.parametrize("store", ["gcs", "s3"])
def test_an_object_that_changes_between_two_ranges_is_one_error(store: str, output: Path) -> None:
    from marin_assets.stages.download.files import DownloadFilesConfig, copy_file, source_file
    from marin_assets.step.values import unwrap_versioned_value

    prefix = object_stores.gcs_prefix() if store == "gcs" else object_stores.s3_prefix()
    path = f"{prefix}/a.bin"
    write_bytes(path, CONTENT)
    config = unwrap_versioned_value(DownloadFilesConfig(source=path, output_path=str(output)))
    listed = source_file(config, "a.bin", list_source(path)["a.bin"])
    write_bytes(path, CONTENT[::-1])
    with pytest.raises(
        SourceError, match=r"changed during the copy, from '(etag|generation) .*another (entity tag|gen)"
    ):
        copy_file(listed)
    assert not (output / "a.bin").exists()


def test_an_object_that_google_would_unpack_is_refused(gcs_bucket: BucketForTests, output: Path) -> None:
    path = f"{gcs_bucket.prefix}/a.json"
    write_bytes(path, CONTENT)
    fs, place = filesystem_of(path)
    bucket, _, key = place.partition("/")
    fs.call("PATCH", "b/{}/o/{}", bucket, key, json={"contentEncoding": "gzip"})
    with pytest.raises(SourceError, match=re.escape("is stored with contentEncoding 'gzip'")):
        download(path, str(output))
