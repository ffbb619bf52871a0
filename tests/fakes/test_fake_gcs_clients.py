"""The clients in use work with the fake GCS: gcsfs, Google's own, TensorStore."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fsspec
import numpy as np
import object_stores
import pytest
import requests
from google.api_core.exceptions import NotFound, PreconditionFailed
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from json_api import JsonApi

MIB = 1 << 20


@pytest.fixture
def fs() -> fsspec.AbstractFileSystem:
    return fsspec.filesystem("gs", use_listings_cache=False)


@pytest.fixture
def bucket(api: JsonApi) -> storage.Bucket:
    credentials = None if object_stores.REAL_GCS_PREFIX else AnonymousCredentials()
    return storage.Client(project="test", credentials=credentials).bucket(api.bucket)


@pytest.mark.parametrize("size", [0, 1, MIB, 6 * MIB + 12345])
def test_gcsfs_writes_and_reads_files_of_any_size(fs: Any, gcs_prefix: str, size: int) -> None:
    data = os.urandom(size)
    fs.pipe_file(f"{gcs_prefix}/piped", data)
    with fs.open(f"{gcs_prefix}/opened", "wb", block_size=MIB) as file:
        for start in range(0, size, 700_001):
            file.write(data[start : start + 700_001])
    assert fs.cat_file(f"{gcs_prefix}/piped") == fs.cat_file(f"{gcs_prefix}/opened") == data
    with fs.open(f"{gcs_prefix}/opened", "rb", block_size=MIB) as file:
        assert file.read() == data


def test_gcsfs_reads_from_the_middle_and_from_the_end(fs: Any, gcs_prefix: str) -> None:
    fs.pipe_file(f"{gcs_prefix}/a", b"0123456789")
    assert fs.cat_file(f"{gcs_prefix}/a", start=2, end=5) == b"234"
    assert fs.cat_file(f"{gcs_prefix}/a", start=-3) == b"789"


@pytest.mark.parametrize("size", [10, 6 * MIB])
def test_gcsfs_creates_a_file_once(fs: Any, gcs_prefix: str, size: int) -> None:
    with fs.open(f"{gcs_prefix}/a", "xb") as file:
        file.write(bytes(size))
    with pytest.raises(FileExistsError), fs.open(f"{gcs_prefix}/a", "xb") as file:
        file.write(b"x" * size)
    with pytest.raises(FileExistsError):
        fs.pipe_file(f"{gcs_prefix}/a", b"x" * size, mode="create")
    assert fs.cat_file(f"{gcs_prefix}/a") == bytes(size)


def test_of_many_that_create_a_file_with_gcsfs_one_does(fs: Any, gcs_prefix: str) -> None:
    def create(number: int) -> bool:
        try:
            fs.pipe_file(f"{gcs_prefix}/{number % 10}", str(number).encode(), mode="create")
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        created = [number for number, is_mine in enumerate(pool.map(create, range(80))) if is_mine]
    assert sorted(fs.cat(fs.ls(gcs_prefix)).values()) == sorted(str(number).encode() for number in created)
    assert len(created) == 10


def test_gcsfs_lists_copies_moves_and_removes(fs: Any, gcs_prefix: str) -> None:
    folder = gcs_prefix.removeprefix("gs://")
    fs.pipe({f"{folder}/a/{number:04}": b"x" for number in range(1200)})
    assert len(fs.find(folder)) == 1200
    assert fs.ls(folder) == [f"{folder}/a"]
    fs.cp_file(f"{folder}/a/0000", f"{folder}/b")
    fs.mv(f"{folder}/b", f"{folder}/c")
    assert fs.ls(folder, detail=False) == [f"{folder}/a", f"{folder}/c"]
    fs.merge(f"{folder}/d", [f"{folder}/a/0000", f"{folder}/a/0001"])
    assert fs.cat_file(f"{folder}/d") == b"xx"
    fs.rm(folder, recursive=True)
    assert not fs.exists(folder)


def test_gcsfs_keeps_metadata(fs: Any, gcs_prefix: str) -> None:
    fs.pipe_file(f"{gcs_prefix}/a", b"x", metadata={"k": "v"}, content_type="text/plain")
    fs.setxattrs(f"{gcs_prefix}/a", k2="v2")
    info = fs.info(f"{gcs_prefix}/a")
    assert (info["metadata"], info["contentType"]) == ({"k": "v", "k2": "v2"}, "text/plain")


@pytest.mark.parametrize("size", [0, 10, 9 * MIB])
def test_googles_client_writes_checks_and_reads(bucket: storage.Bucket, api: JsonApi, size: int) -> None:
    blob, data = bucket.blob(api.full("a"), chunk_size=MIB), os.urandom(size)
    with blob.open("wb", checksum="crc32c") as file:
        file.write(data)
    assert bucket.blob(api.full("a")).download_as_bytes(checksum="md5") == data
    bucket.blob(api.full("b")).upload_from_string(data, checksum="crc32c")
    assert bucket.blob(api.full("b")).download_as_bytes(checksum="crc32c") == data
    assert bucket.get_blob(api.full("b")).size == size


def test_googles_client_writes_and_deletes_under_conditions(bucket: storage.Bucket, api: JsonApi) -> None:
    blob = bucket.blob(api.full("a"))
    blob.upload_from_string(b"one", if_generation_match=0)
    first = blob.generation
    with pytest.raises(PreconditionFailed):
        bucket.blob(api.full("a")).upload_from_string(b"two", if_generation_match=0)
    blob.upload_from_string(b"two", if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        blob.delete(if_generation_match=first)
    blob.delete(if_generation_match=blob.generation)
    with pytest.raises(NotFound):
        blob.reload()


def test_googles_client_pages_composes_rewrites_and_deletes_in_batches(bucket: storage.Bucket, api: JsonApi) -> None:
    for name in "abcde":
        bucket.blob(api.full(name)).upload_from_string(name.encode())
    listed = bucket.client.list_blobs(bucket, prefix=f"{api.folder}/", page_size=2)
    assert [[blob.name for blob in page] for page in listed.pages] == [
        [api.full("a"), api.full("b")],
        [api.full("c"), api.full("d")],
        [api.full("e")],
    ]
    made = bucket.blob(api.full("all"))
    made.compose([bucket.blob(api.full(name)) for name in "abcde"], if_generation_match=0)
    assert (made.download_as_bytes(), made.component_count, made.md5_hash) == (b"abcde", 5, None)
    copy = bucket.blob(api.full("copy"))
    assert copy.rewrite(made, if_generation_match=0)[0] is None
    assert copy.download_as_bytes() == b"abcde"
    with bucket.client.batch():
        for name in "abcde":
            bucket.blob(api.full(name)).delete()
    assert [blob.name for blob in bucket.client.list_blobs(bucket, prefix=f"{api.folder}/")] == [
        api.full("all"),
        api.full("copy"),
    ]


def test_googles_client_changes_fields_under_conditions(bucket: storage.Bucket, api: JsonApi) -> None:
    blob = bucket.blob(api.full("a"))
    blob.upload_from_string(b"x")
    blob.metadata = {"k": "v"}
    blob.patch(if_metageneration_match=1)
    assert (bucket.get_blob(api.full("a")).metadata, blob.metageneration) == ({"k": "v"}, 2)
    with pytest.raises(PreconditionFailed):
        blob.patch(if_metageneration_match=1)


def test_tensorstore_writes_overwrites_reads_and_deletes_an_array(gcs_prefix: str) -> None:
    import tensorstore as ts

    spec = {"driver": "zarr3", "kvstore": f"{gcs_prefix}/array/"}
    chunks = {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 16]}}}
    values = np.arange(100 * 60, dtype=np.int32).reshape(100, 60)
    store = ts.open({**spec, "metadata": chunks}, create=True, dtype=ts.int32, shape=values.shape).result()
    store.write(values).result()
    again = ts.open(spec).result()
    assert np.array_equal(again.read().result(), values)
    again[5:50, 7:20].write(-values[5:50, 7:20]).result()
    values[5:50, 7:20] *= -1
    assert np.array_equal(ts.open(spec).result().read().result(), values)
    files = ts.KvStore.open(f"{gcs_prefix}/array/").result()
    assert len(files.list().result()) == 1 + 7 * 4
    files.delete_range(ts.KvStore.KeyRange()).result()
    assert files.list().result() == []


def test_tensorstore_writes_and_reads_under_conditions(gcs_prefix: str) -> None:
    import tensorstore as ts

    files = ts.KvStore.open(f"{gcs_prefix}/").result()
    nothing = files.read("a").result().stamp.generation
    first = files.write("a", b"one", if_equal=nothing).result().generation
    assert files.write("a", b"two", if_equal=nothing).result().generation == b""
    files.write("a", b"two", if_equal=first).result()
    assert files.write("a", b"three", if_equal=first).result().generation == b""
    read = files.read("a").result()
    assert (read.state, read.value) == ("value", b"two")
    assert files.read("a", if_not_equal=read.stamp.generation).result().state == "unspecified"
    assert files.read("not there").result().state == "missing"
    assert files["a"] == b"two"
    files.delete_range(ts.KvStore.KeyRange("a", "b")).result()
    assert files.read("a").result().state == "missing"


def test_tensorstore_reads_ranges_and_writes_large_values(gcs_prefix: str) -> None:
    import tensorstore as ts

    files, data = ts.KvStore.open(f"{gcs_prefix}/").result(), os.urandom(5 * MIB)
    files.write("a", data).result()
    assert files.read("a").result().value == data
    assert files.read("a", byte_range=slice(1000, 2000)).result().value == data[1000:2000]


@pytest.mark.skipif(bool(object_stores.REAL_GCS_PREFIX), reason="a real bucket knows it")
def test_the_server_reports_requests_that_it_does_not_know(api: JsonApi) -> None:
    answer = requests.get(f"{api.url}/storage/v1/b/{api.bucket}/o", params={"matchGlob": "*"}, timeout=60)
    assert (answer.status_code, "does not know the parameter 'matchGlob'" in answer.text) == (501, True)
