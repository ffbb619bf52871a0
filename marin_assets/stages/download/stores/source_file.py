"""A file to copy: its place, its state when it was listed, and the checksums that its content must have."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.download.stores.access import StoreAccess
from marin_assets.stages.download.web.answers import RANGE
from marin_assets.stages.download.web.faults import Fault
from marin_assets.stages.download.web.transfer import WrongChecksumError, mark_path
from marin_resources.storage.files import StoredFile
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

MARKS = ("generation", "etag", "content-md5", "last-modified", "lastmodified", "updated", "mtime", "created")
"""Fields of a store's file information that change when the file changes, the most reliable first."""
KINDS = {"md5": "MD5", "sha1": "SHA-1", "sha256": "SHA-256", "sha512": "SHA-512", "crc32c": "CRC32C"}
"""Kinds of checksums, as errors spell them."""


class SourceError(MarinError, ValueError):
    """A source that differs from its config or its listing: one sentence with the file and both values."""


class MissingFileError(SourceError, FileNotFoundError):
    """A file that its store does not have, or does not show: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A checksum that a file must have."""

    kind: str
    """One of KINDS."""
    digest: str
    """In hexadecimal."""
    by: str
    """The origin, as a phrase: "expected_sha256", "'SHA256SUMS'", "its store"."""


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """One file to copy: a shard of the work."""

    source: str
    path: str
    """Name below the output."""
    output_path: str
    size_bytes: int | None
    """The listed size; None if the store does not report it."""
    mark: str
    """The listed mark; see `mark_of`."""
    expected: tuple[Expected, ...] = ()
    access: StoreAccess = field(default_factory=StoreAccess)
    is_stream: bool = False
    """The mark cannot be compared while the file is read, so no part of it is continued."""

    @property
    def state(self) -> str:
        """Changes with the content; "" if a part of it must not be continued."""
        return "" if self.is_stream else self.mark

    @property
    def checksum_path(self) -> str:
        return mark_path(self.path, self.output_path)

    @property
    def target(self) -> str:
        return join(self.output_path, self.path)

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        name = self.source.rpartition("/")[2]
        return (StoredFile(path=self.source, name=name, size_bytes=self.size_bytes or 0, stamp=self.mark),)


def mark_of(info: Mapping[str, Any]) -> str:
    """Return a string that changes when the file changes: the first of MARKS that the store reports; "" if none."""
    reported = {key.lower(): value for key, value in info.items()}
    return next((f"{mark} {reported[mark]}" for mark in MARKS if reported.get(mark) is not None), "")


def changed(file: SourceFile, before: object, after: object) -> SourceError:
    """The error for a file in another state than when it was listed."""
    return SourceError(
        f"{file.source!r} changed during the copy, from {before!r} to {after!r}. Run the step again when nothing "
        "writes to it."
    )


def wrong_size(file: SourceFile, size_bytes: int) -> SourceError:
    """The error for a file of another size than it was listed with."""
    return SourceError(
        f"{file.source!r} was listed with {file.size_bytes} bytes, and has {size_bytes}. It was truncated, or is still "
        "being written. Run the step again when it is complete."
    )


def require_range(file: SourceFile, given: str, start: int) -> None:
    """Raise Fault if `Content-Range` of a store's answer is another range, SourceError for another size of the file."""
    match = RANGE.fullmatch(given)
    if match is None or int(match[1]) != start:
        raise Fault("wrong_range", f"the store sent the range {given!r:.60}, expected one from {start}")
    if match[3].isdecimal() and file.size_bytes not in (None, int(match[3])):
        raise wrong_size(file, int(match[3]))


def of_store(info: Mapping[str, Any]) -> tuple[Expected, ...]:
    """The checksum that GCS has of every object; none of another store, whose entity tags are of several kinds."""
    try:
        digest = base64.b64decode(info["crc32c"], validate=True)
    except (KeyError, TypeError, binascii.Error):
        return ()
    return (Expected(kind="crc32c", digest=digest.hex(), by="its store"),)


class ContentCheck:
    """The checksums of the content of one file."""

    def __init__(self, file: SourceFile) -> None:
        self._file, self._size_bytes = file, 0
        self._running = {kind: _running(kind) for kind in ("sha256", *(checksum.kind for checksum in file.expected))}

    def update(self, block: bytes) -> None:
        self._size_bytes += len(block)
        for running in self._running.values():
            running.update(block)

    def entry(self) -> dict[str, Any]:
        """Mark, size and checksums of the file. Raises WrongChecksumError."""
        digests = {kind: _hexadecimal(running.hexdigest()) for kind, running in self._running.items()}
        for expected in self._file.expected:
            if digests[expected.kind] != expected.digest.lower():
                raise WrongChecksumError(
                    f"the {KINDS[expected.kind]} {digests[expected.kind]!r}, expected {expected.digest!r} by "
                    f"{expected.by},"
                )
        checksum = {"size": self._size_bytes, "sha256": digests["sha256"]}
        return {
            "source_mark": self._file.mark,
            "source_size": self._file.size_bytes,
            "checksum": checksum,
            "verified": {expected.kind: expected.digest.lower() for expected in self._file.expected},
        }


def _running(kind: str) -> Any:
    if kind != "crc32c":
        return hashlib.new(kind, usedforsecurity=False)
    import google_crc32c

    return google_crc32c.Checksum()


def _hexadecimal(digest: str | bytes) -> str:
    return digest.decode() if isinstance(digest, bytes) else digest
