"""A mirror's files on Google Cloud Storage. Between buckets Google itself copies, and no byte passes this process.

The metadata of a copy holds its origin, `marin-mirror-source` and `-generation`, and an id of its own.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from marin_resources.storage.control.gcs import ABSENT, UNAVAILABLE, object_at
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.filesystems.disk import TEMPORARY_SUFFIX
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.mirror.protocol import (
    COPY_ID,
    GENERATION,
    SOURCE,
    FileCopy,
    Origin,
    Stored,
    changed,
    damaged,
    is_own,
)
from marin_resources.storage.paths import StoreKind, kind_of
from marin_resources.storage.upload.upload import upload

KEPT = ("contentType", "contentEncoding", "contentLanguage", "contentDisposition", "cacheControl", "customTime")
"""Fields of an object that its copy keeps."""


class GcsStore:
    """A bucket of Google Cloud Storage."""

    def find(self, path: str) -> Stored | None:
        fs, bucket, key = object_at(path)
        try:
            with _translated_errors(path):
                return _stored(path, fs.call("GET", "b/{}/o/{}", bucket, key, json_out=True))
        except FileNotFoundError:
            return None

    def find_below(self, path: str) -> dict[str, Stored]:
        fs, root = filesystem_of(path)
        try:
            with _translated_errors(path):
                infos = fs.find(root, detail=True)
        except FileNotFoundError:
            return {}
        named = {stored[len(root.rstrip("/")) :].strip("/"): info for stored, info in infos.items()}
        return {
            name: _stored(f"{path}/{name}".rstrip("/"), info)
            for name, info in named.items()
            if not is_own(name) and not info["name"].endswith("/")
        }

    def read(self, stored: Stored, start: int, end: int) -> bytes:
        if start >= end:
            return b""
        fs, bucket, key = object_at(stored.path)
        options = {"alt": "media", "generation": stored.generation, "headers": {"Range": f"bytes={start}-{end - 1}"}}
        try:
            with _translated_errors(stored.path):
                return bytes(fs.call("GET", "b/{}/o/{}", bucket, key, **options)[1])
        except FileNotFoundError:
            raise changed(stored.path) from None

    def write_copy(self, copy: FileCopy) -> None:
        if kind_of(copy.source.path) is StoreKind.GCS:
            return _rewrite(copy)
        staged = _staged_path(copy)
        copy.check()
        try:
            _upload(copy, staged)
            uploaded = self.find(staged)
            if uploaded is None:  # another process copies the same file, and was faster
                raise changed(copy.source.path)
            if uploaded.size_bytes != copy.source.size_bytes:
                raise damaged(copy, f"{uploaded.size_bytes} bytes")
            _rewrite(replace(copy, source=uploaded, source_store=self))
        finally:
            _remove(staged)
        return None


def _staged_path(copy: FileCopy) -> str:
    """The path that the source is uploaded to first. The next copy uses and removes the upload of a killed one."""
    folder, _, name = copy.target.rpartition("/")
    state = hashlib.sha256(f"{copy.source.path} {copy.source.generation}".encode()).hexdigest()[:8]
    return f"{folder}/.{name}.{state}{TEMPORARY_SUFFIX}"


def _upload(copy: FileCopy, staged: str) -> None:
    """Upload the source from this machine's disk; the store checks the md5."""
    with open(copy.source.path, "rb") as file:
        upload(staged, file, replace=False)
    now = copy.source_store.find(copy.source.path)
    if now is None or now.generation != copy.source.generation:
        raise changed(copy.source.path)


def _rewrite(copy: FileCopy) -> None:
    copy_id = uuid.uuid4().hex
    metadata = {SOURCE: copy.origin.path, GENERATION: copy.origin.generation, COPY_ID: copy_id}
    try:
        written = _stored(copy.target, _rewritten(copy, metadata))
    except FileExistsError:  # by another process, or by this request, whose response was lost
        existing = GcsStore().find(copy.target)
        if existing is None or existing.copy_id != copy_id:
            raise
        written = existing
    except FileNotFoundError:
        raise changed(copy.source.path) from None
    if (written.size_bytes, written.checksum) != (copy.source.size_bytes, copy.source.checksum):
        _remove(copy.target, written.generation)
        raise damaged(copy, f"{written.size_bytes} bytes, {written.checksum}")


def _rewritten(copy: FileCopy, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The new object. Google copies a large object in several requests, each of which returns a token for the next."""
    source = copy.source
    fs, bucket, key = object_at(source.path)
    _, to_bucket, to_key = object_at(copy.target)
    body = {**source.about, "metadata": {**source.about.get("metadata", {}), **metadata}}
    conditions = {"ifGenerationMatch": copy.replaces or ABSENT, "ifSourceGenerationMatch": source.generation}
    token = None
    while True:
        copy.check()
        with _translated_errors(copy.target):
            answer = fs.call(
                "POST",
                "b/{}/o/{}/rewriteTo/b/{}/o/{}",
                bucket,
                key,
                to_bucket,
                to_key,
                json=body,
                json_out=True,
                rewriteToken=token,
                **conditions,
            )
        if answer["done"]:
            return answer["resource"]
        token = answer["rewriteToken"]


def _remove(path: str, generation: str | None = None) -> None:
    fs, bucket, key = object_at(path)
    condition = {"ifGenerationMatch": generation} if generation else {}
    with suppress(FileNotFoundError, FileExistsError), _translated_errors(path):
        fs.call("DELETE", "b/{}/o/{}", bucket, key, **condition)


def _stored(path: str, resource: Mapping[str, Any]) -> Stored:
    metadata = resource.get("metadata") or {}
    origin = Origin(path=metadata[SOURCE], generation=metadata[GENERATION]) if SOURCE in metadata else None
    about = {name: resource[name] for name in KEPT if resource.get(name)}
    own = {key: value for key, value in metadata.items() if key not in (SOURCE, GENERATION, COPY_ID)}
    return Stored(
        path=path,
        size_bytes=int(resource["size"]),
        generation=str(resource["generation"]),
        checksum=f"crc32c:{resource['crc32c']}",
        origin=origin,
        copy_id=metadata.get(COPY_ID),
        about={**about, "metadata": own} if own else about,
    )


@contextmanager
def _translated_errors(path: str) -> Iterator[None]:
    try:
        yield
    except UNAVAILABLE as error:
        raise UnavailableError(f"{path!r} cannot be read ({type(error).__name__}: {error}).") from error
