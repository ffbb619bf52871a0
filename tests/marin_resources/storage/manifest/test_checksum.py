"""Checksums: one content has one checksum on every store."""

from __future__ import annotations

import hashlib
import os

import pytest

from marin_resources.storage.files import write_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.manifest.checksum import (
    CRC32C,
    LOCAL_CHUNK_BYTES,
    MD5,
    REMOTE_CHUNK_BYTES,
    ChecksumError,
    algorithm_of,
    read_checksum,
    stored_checksum,
)
from marin_resources.storage.paths import is_local, join

CHECK_VALUE = "crc32c:4waSgw=="
"""Of the text 123456789: the polynomial's published check value, e3069283."""


@pytest.mark.parametrize("kind", [CRC32C, MD5])
def test_the_checksum_of_one_text_is_the_same_on_every_store(any_prefix: str, kind: str) -> None:
    path = join(any_prefix, "a/text")
    write_bytes(path, b"123456789")
    expected = {CRC32C: CHECK_VALUE, MD5: f"md5:{hashlib.md5(b'123456789').hexdigest()}"}
    assert read_checksum(*filesystem_of(path), kind) == expected[kind]


def test_gcs_has_the_checksum_that_is_computed_elsewhere(gcs_prefix: str) -> None:
    path = join(gcs_prefix, "a/text")
    write_bytes(path, b"123456789")
    fs, stored = filesystem_of(path)
    assert stored_checksum(fs.find(join(gcs_prefix, "a"), detail=True)[stored]) == CHECK_VALUE


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_file_of_several_chunks_is_read_to_its_end(disk_or_gcs_prefix: str, more: int) -> None:
    chunk = LOCAL_CHUNK_BYTES if is_local(disk_or_gcs_prefix) else REMOTE_CHUNK_BYTES
    data = os.urandom(chunk + more)
    path = join(disk_or_gcs_prefix, "large")
    write_bytes(path, data)
    read: list[int] = []
    found = read_checksum(*filesystem_of(path), MD5, read.append)
    assert found == f"md5:{hashlib.md5(data).hexdigest()}"
    assert sum(read) == len(data)


def test_an_empty_file_has_a_checksum(any_prefix: str) -> None:
    path = join(any_prefix, "empty")
    write_bytes(path, b"")
    assert read_checksum(*filesystem_of(path)) == "crc32c:AAAAAA=="


def test_a_tag_of_an_upload_in_parts_is_no_checksum() -> None:
    whole, parts = hashlib.md5(b"x").hexdigest(), f"{hashlib.md5(b'x').hexdigest()}-3"
    assert stored_checksum({"ETag": f'"{whole}"'}) == f"md5:{whole}"
    assert stored_checksum({"ETag": f'"{parts}"'}) is None
    assert stored_checksum({"size": 3}) is None


def test_a_checksum_of_an_unknown_algorithm_is_refused() -> None:
    assert algorithm_of(CHECK_VALUE) == CRC32C
    with pytest.raises(ChecksumError, match="'blake9:00' has an unknown algorithm, expected 'crc32c' or 'md5'"):
        algorithm_of("blake9:00")
