"""Checksums of files: the store's own where it has one, else computed from the bytes.

    "crc32c:<base64>"   GCS has it for every object. It is also computed for files on a local disk, so that an output
                        there and the same output on GCS have one digest
    "md5:<hex>"         S3 has it as the entity tag of every object that was uploaded in one part

In:  the listing's info of a file, or the file.   Out: the text above.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import fsspec

CRC32C, MD5 = "crc32c", "md5"
LOCAL_CHUNK_BYTES = 1 << 20
"""Measured on one core: 4-6 GB/s for crc32c and 0.5 GB/s for md5, the same from 256 KiB to 4 MiB."""
REMOTE_CHUNK_BYTES = 8 << 20
"""One request for each, so that no file is held in memory as a whole."""

OnBytes = Callable[[int], None]


class ChecksumError(MarinError, ValueError):
    """A checksum of an unknown algorithm: one sentence."""


class _Hash(Protocol):
    def update(self, chunk: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


def stored_checksum(info: Mapping[str, Any]) -> str | None:
    """The store's own checksum of a file, from the info of its listing; None if it has none."""
    if info.get("crc32c"):
        return f"{CRC32C}:{info['crc32c']}"
    tag = str(info.get("ETag") or "").strip('"')
    # The tag of an object uploaded in parts ends in "-<parts>" and is no checksum of its bytes.
    return f"{MD5}:{tag}" if re.fullmatch("[0-9a-f]{32}", tag) else None


def algorithm_of(checksum: str) -> str:
    """ "crc32c" or "md5". Raises ChecksumError for another."""
    algorithm = checksum.partition(":")[0]
    if algorithm not in (CRC32C, MD5):
        raise ChecksumError(
            f"The checksum {checksum!r} has an unknown algorithm, expected {CRC32C!r} or {MD5!r}. Update this checkout."
        )
    return algorithm


def read_checksum(
    fs: fsspec.AbstractFileSystem, stored: str, algorithm: str = CRC32C, on_bytes: OnBytes | None = None
) -> str:
    """Read the file `stored` (its path in the store's spelling) and return the checksum of its bytes.

    `on_bytes` is called with the size of each chunk read. Raises FileNotFoundError.
    """
    state = _new_hash(algorithm)
    for chunk in _chunks(fs, stored):
        state.update(chunk)
        if on_bytes is not None:
            on_bytes(len(chunk))
    digest = state.digest()
    return f"{algorithm}:{base64.b64encode(digest).decode() if algorithm == CRC32C else digest.hex()}"


def _new_hash(algorithm: str) -> _Hash:
    if algorithm == MD5:
        import hashlib

        return hashlib.md5(usedforsecurity=False)
    import google_crc32c

    return google_crc32c.Checksum()


def _chunks(fs: fsspec.AbstractFileSystem, stored: str) -> Iterator[bytes]:
    if "file" in fs.protocol:
        with open(stored, "rb", buffering=0) as file:
            while chunk := file.read(LOCAL_CHUNK_BYTES):
                yield chunk
        return
    size = fs.info(stored)["size"]
    for start in range(0, size, REMOTE_CHUNK_BYTES):
        yield fs.cat_file(stored, start=start, end=min(start + REMOTE_CHUNK_BYTES, size))
