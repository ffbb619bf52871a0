"""Buckets and the objects in them: each write makes a new generation, and nothing is kept of the old one."""

from __future__ import annotations

import base64
import bisect
import datetime
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from fake_gcs.checksums import Checksums
from fake_gcs.refusals import conflict, invalid, no_such_bucket, no_such_object

Data = bytes | bytearray | memoryview
SETTABLE = (
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "contentType",
    "customTime",
    "metadata",
    "storageClass",
)
"""The fields of an object that a client decides."""


@dataclass(kw_only=True)
class StoredObject:
    bucket: str
    name: str
    data: Data
    checksums: Checksums
    fields: dict[str, Any]
    """The SETTABLE fields that the client decided."""
    component_count: int | None
    generation: int
    metageneration: int = 1
    created: str
    updated: str

    def etag(self) -> str:
        return base64.b64encode(f"{self.generation}/{self.metageneration}".encode()).decode()

    def resource(self, origin: str) -> dict[str, Any]:
        """As the JSON API shows it. `origin` is the server's address."""
        place = f"b/{quote(self.bucket, safe='')}/o/{quote(self.name, safe='')}"
        optional = {"md5Hash": self.checksums.md5, "componentCount": self.component_count}
        return {
            "kind": "storage#object",
            "id": f"{self.bucket}/{self.name}/{self.generation}",
            "selfLink": f"{origin}/storage/v1/{place}",
            "mediaLink": f"{origin}/download/storage/v1/{place}?generation={self.generation}&alt=media",
            "name": self.name,
            "bucket": self.bucket,
            "generation": str(self.generation),
            "metageneration": str(self.metageneration),
            "storageClass": "STANDARD",
            "size": str(len(self.data)),
            "crc32c": self.checksums.crc32c,
            "etag": self.etag(),
            "timeCreated": self.created,
            "updated": self.updated,
            "timeStorageClassUpdated": self.created,
            **{name: value for name, value in optional.items() if value is not None},
            **self.fields,
        }


@dataclass(kw_only=True)
class Bucket:
    name: str
    fields: dict[str, Any]
    metageneration: int = 1
    objects: dict[str, StoredObject] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    """Names of the objects, sorted: a listing begins in the middle without looking at the rest."""
    removed: bool = False
    changed: Callable[[Bucket, str | None], None] | None = None
    """Called after each change: of the object of that name, or of the bucket itself."""

    def find(self, name: str, generation: str | None = None) -> StoredObject:
        """The object, of that generation if one is named. Raises RefusalError."""
        stored = self.objects.get(name)
        if stored is None or generation not in (None, str(stored.generation)):
            raise no_such_object(self.name, name)
        return stored

    def put(self, stored: StoredObject) -> None:
        if stored.name not in self.objects:
            bisect.insort(self.names, stored.name)
        self.objects[stored.name] = stored
        self.say(stored.name)

    def remove(self, name: str) -> None:
        del self.objects[name]
        del self.names[bisect.bisect_left(self.names, name)]
        self.say(name)

    def say(self, name: str | None) -> None:
        if self.changed is not None:
            self.changed(self, name)

    def resource(self) -> dict[str, Any]:
        return {
            "kind": "storage#bucket",
            "id": self.name,
            "name": self.name,
            "metageneration": str(self.metageneration),
            "location": "US",
            "storageClass": "STANDARD",
            "etag": base64.b64encode(str(self.metageneration).encode()).decode(),
            **self.fields,
        }


class Store:
    """All buckets, and the clock of generations."""

    def __init__(self, origin: str = "") -> None:
        self.origin = origin
        self.buckets: dict[str, Bucket] = {}
        self.changed: Callable[[Bucket, str | None], None] | None = None
        """For buckets that are made."""
        self._last_generation = 0

    def bucket(self, name: str) -> Bucket:
        """Raises RefusalError."""
        if name not in self.buckets:
            raise no_such_bucket()
        return self.buckets[name]

    def create_bucket(self, name: str, fields: Mapping[str, Any]) -> Bucket:
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", name):
            raise invalid(f"Invalid bucket name: '{name}'")
        if name in self.buckets:
            raise conflict("Your previous request to create the named bucket succeeded and you already own it.")
        self.buckets[name] = Bucket(name=name, fields=dict(fields), changed=self.changed)
        self.buckets[name].say(None)
        return self.buckets[name]

    def create(
        self,
        bucket: str,
        name: str,
        data: Data,
        checksums: Checksums,
        fields: Mapping[str, Any],
        component_count: int | None = None,
    ) -> StoredObject:
        """Put a new generation in the place of an existing one. Conditions are the caller's to have checked."""
        place, now = self.bucket(bucket), now_text()
        stored = StoredObject(
            bucket=bucket,
            name=name,
            data=data,
            checksums=checksums,
            fields={key: fields[key] for key in SETTABLE if fields.get(key) is not None},
            component_count=component_count,
            generation=self._next_generation(),
            created=now,
            updated=now,
        )
        place.put(stored)
        return stored

    def _next_generation(self) -> int:
        """GCS's generations are microseconds; two writes never share one."""
        self._last_generation = max(self._last_generation + 1, time.time_ns() // 1000)
        return self._last_generation


def refuse_bad_name(name: str) -> None:
    """Raise RefusalError for what cannot be the name of an object."""
    if not name:
        raise invalid("Required object name is missing.", location="name")
    if len(name.encode("utf-8", "surrogatepass")) > 1024:
        raise invalid("The maximum object length is 1024 characters, but got a name with more.")
    forbidden = name in (".", "..") or name.startswith(".well-known/acme-challenge/")
    if forbidden or "\r" in name or "\n" in name or "\ufffd" in name:
        raise invalid(f"Invalid object name: '{name}'")


def now_text() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
