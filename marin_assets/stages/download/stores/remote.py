"""A store for the transfer: ranges of a file as long as it is in the state of its listing."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from typing import Any, Protocol

from marin_assets.stages.download.stores.access import StoreAccess, is_web
from marin_assets.stages.download.stores.source_file import ContentCheck, SourceFile
from marin_assets.stages.download.web.pace import Pace
from marin_assets.stages.download.web.tally import Tally
from marin_resources.storage.paths import StoreKind, kind_of, without_scheme


class Reader(Protocol):
    """Reads ranges from one kind of store. Safe for many threads."""

    def blocks(self, file: SourceFile, start: int, end: int | None, *, whole: bool) -> Iterator[bytes]:
        """The bytes from `start` to `end`. Raises Fault, and SourceError for a file that has changed."""


class StoreRemote:
    """The files of a store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def blocks(self, file: SourceFile, start: int, end: int | None, *, whole: bool) -> Iterator[bytes]:
        """The bytes from `start` to `end`. Raises Fault and SourceError."""
        return self._reader.blocks(file, start, end, whole=whole)

    def forget(self, file: SourceFile) -> None:
        """Nothing is kept of a file."""

    def check(self, file: SourceFile) -> ContentCheck:
        """The checksums to compute of a file."""
        return ContentCheck(file)

    def is_complete(self, file: SourceFile, entry: dict[str, Any], size_bytes: int) -> bool:
        """Whether an earlier attempt has fetched this content, in the state of the listing, and verified it."""
        checksum = entry["checksum"]
        verified = {**entry.get("verified", {}), "sha256": checksum["sha256"]}
        return (
            (entry["source_mark"], entry["source_size"]) == (file.mark, file.size_bytes)
            and checksum["size"] == size_bytes
            and all(verified.get(expected.kind) == expected.digest.lower() for expected in file.expected)
        )

    def subject(self, file: SourceFile) -> str:
        return f"file {file.source!r}"

    def advice(self, file: SourceFile) -> str:
        return "correct the expected checksum or the source, and run it again."


def reader_of(source: str, access: StoreAccess, output_path: str, tally: Tally, stop: threading.Event) -> Reader:
    """The reader of a source's store. Imports are late: a bucket's client takes a second to load."""
    if is_web(source):
        from marin_assets.stages.download.stores.web import WebReader

        return WebReader(access, output_path, tally, stop)
    kind = kind_of(source)
    origin = source.partition("://")[0] + "://" + without_scheme(source).partition("/")[0]
    pace = Pace(output_path, origin, access.max_requests_per_s, stop) if access.max_requests_per_s else None
    if kind is StoreKind.S3:
        from marin_assets.stages.download.stores.s3 import S3Reader

        return S3Reader(access, tally, pace)
    if kind is StoreKind.GCS:
        from marin_assets.stages.download.stores.gcs import GcsReader

        return GcsReader(access, tally, pace)
    from marin_assets.stages.download.stores.other import OtherReader

    return OtherReader()


def comparable(file: SourceFile) -> SourceFile:
    """The file; as a stream, if its mark cannot be compared while it is read. Raises SourceError if it is gone."""
    if is_web(file.source):
        return file
    condition = {StoreKind.S3: "etag ", StoreKind.GCS: "generation "}.get(kind_of(file.source))
    if condition is not None:
        return file if file.mark.startswith(condition) else dataclasses.replace(file, is_stream=True)
    from marin_assets.stages.download.stores.other import with_comparable_mark

    return with_comparable_mark(file)
