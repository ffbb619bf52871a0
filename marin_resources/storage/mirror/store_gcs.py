"""A mirror's requests to Google Cloud Storage. From bucket to bucket Google itself copies, and no byte comes here.

A copy carries what it is of in its metadata: `marin-mirror-source`, `-generation`, and an id of its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from marin_resources.storage.control.gcs import ABSENT, UNAVAILABLE
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.disk import TEMPORARY_SUFFIX
from marin_resources.storage.filesystem import filesystem_of
from marin_resources.storage.mirror.stored import (
    COPY_ID,
    GENERATION,
    SOURCE,
    Origin,
    Store,
    Stored,
    changed,
    damaged,
    is_own,
)
from marin_resources.storage.paths import StoreKind, kind_of
from marin_resources.storage.upload.upload import upload

KEPT = ("contentType", "contentEncoding", "contentLanguage", "contentDisposition", "cacheControl", "customTime")


class GcsStore:
    def find(self, path: str) -> Stored | None:
        fs, bucket, key = _split(path)
        try:
            with _asked(path):
                return _stored(path, fs.call("GET", "b/{}/o/{}", bucket, key, json_out=True))
        except FileNotFoundError:
            return None

    def find_below(self, path: str) -> dict[str, Stored]:
        fs, root = filesystem_of(path)
        try:
            with _asked(path):
                found = fs.find(root, detail=True)
        except FileNotFoundError:
            return {}
        named = {stored[len(root.rstrip("/")) :].strip("/"): info for stored, info in found.items()}
        return {
            name: _stored(f"{path}/{name}".rstrip("/"), info)
            for name, info in named.items()
            if not is_own(name) and not info["name"].endswith("/")
        }

    def read(self, stored: Stored, start: int, end: int) -> bytes:
        if start >= end:
            return b""
        fs, bucket, key = _split(stored.path)
        asked = {"alt": "media", "generation": stored.generation, "headers": {"Range": f"bytes={start}-{end - 1}"}}
        try:
            with _asked(stored.path):
                return bytes(fs.call("GET", "b/{}/o/{}", bucket, key, **asked)[1])
        except FileNotFoundError:
            raise changed(stored.path) from None

    def take(
        self,
        source: Stored,
        target: str,
        origin: Origin,
        replaces: str | None,
        check: Callable[[], None],
        *,
        source_store: Store,
    ) -> None:
        if kind_of(source.path) is StoreKind.GCS:
            return _rewrite(source, target, origin, replaces, check)
        folder, _, name = target.rpartition("/")
        staged = f"{folder}/.{name}.{uuid.uuid4().hex[:8]}{TEMPORARY_SUFFIX}"
        check()
        try:
            _upload(source, staged, source_store)
            uploaded = self.find(staged)
            if uploaded is None or uploaded.size_bytes != source.size_bytes:
                raise damaged(source, target, f"{uploaded.size_bytes if uploaded else 0} bytes")
            _rewrite(uploaded, target, origin, replaces, check)
        finally:
            _remove(staged)
        return None


def _upload(source: Stored, staged: str, source_store: Store) -> None:
    """From this machine's disk; the store checks the bytes' md5."""
    with open(source.path, "rb") as file:
        upload(staged, file, replace=False)
    now = source_store.find(source.path)
    if now is None or now.generation != source.generation:
        raise changed(source.path)


def _rewrite(source: Stored, target: str, origin: Origin, replaces: str | None, check: Callable[[], None]) -> None:
    copy_id = uuid.uuid4().hex
    metadata = {SOURCE: origin.path, GENERATION: origin.generation, COPY_ID: copy_id}
    try:
        made = _stored(target, _rewritten(source, target, metadata, replaces, check))
    except FileExistsError:  # by another, or by this very request, whose response was lost
        found = GcsStore().find(target)
        if found is None or found.copy_id != copy_id:
            raise
        made = found
    except FileNotFoundError:
        raise changed(source.path) from None
    if (made.size_bytes, made.checksum) != (source.size_bytes, source.checksum):
        _remove(target, made.generation)
        raise damaged(source, target, f"{made.size_bytes} bytes, {made.checksum}")


def _rewritten(
    source: Stored, target: str, metadata: Mapping[str, str], replaces: str | None, check: Callable[[], None]
) -> dict[str, Any]:
    """Google copies a large object in several goes, each of which returns a token for the next."""
    fs, bucket, key = _split(source.path)
    _, to_bucket, to_key = _split(target)
    body = {**source.about, "metadata": {**source.about.get("metadata", {}), **metadata}}
    conditions = {"ifGenerationMatch": replaces or ABSENT, "ifSourceGenerationMatch": source.generation}
    token = None
    while True:
        check()
        with _asked(target):
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
    fs, bucket, key = _split(path)
    condition = {"ifGenerationMatch": generation} if generation else {}
    with suppress(FileNotFoundError, FileExistsError), _asked(path):
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


def _split(path: str) -> tuple[Any, str, str]:
    fs, place = filesystem_of(path)
    bucket, _, key = place.partition("/")
    return fs, bucket, key


@contextmanager
def _asked(path: str) -> Iterator[None]:
    try:
        yield
    except UNAVAILABLE as error:
        raise UnavailableError(f"{path!r} cannot be asked for ({type(error).__name__}: {error}).") from error
