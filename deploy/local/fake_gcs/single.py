"""One object: its metadata read, its content read, its fields changed, deleted."""

from __future__ import annotations

import re
from datetime import datetime
from email.utils import format_datetime
from typing import Any

from fake_gcs.call import Answer, Call, json_answer
from fake_gcs.objects import SETTABLE, Store, StoredObject, now_text
from fake_gcs.preconditions import check
from fake_gcs.refusals import range_not_satisfiable


async def get_object(store: Store, call: Call, bucket: str, name: str) -> Answer:
    """The object, or its content with `alt=media`. A condition on a missing object is 412 before it is 404."""
    place = store.bucket(bucket)
    check(call.query, place.objects.get(name))
    stored = place.find(name, call.query.get("generation"))
    return media_answer(call, stored) if call.wants_media() else json_answer(call, stored.resource(store.origin))


async def patch_object(store: Store, call: Call, bucket: str, name: str) -> Answer:
    """Change the fields that are named; null removes one, and so it does within `metadata`."""
    changes = await call.read_json()
    return _change(store, call, bucket, name, lambda fields: _merged(fields, changes))


async def update_object(store: Store, call: Call, bucket: str, name: str) -> Answer:
    """Put other fields in the place of all."""
    changes = await call.read_json()
    return _change(store, call, bucket, name, lambda fields: changes)


async def delete_object(store: Store, call: Call, bucket: str, name: str) -> Answer:
    place = store.bucket(bucket)
    check(call.query, place.find(name, call.query.get("generation")))
    place.remove(name)
    return Answer(status=204)


def _change(store: Store, call: Call, bucket: str, name: str, change: Any) -> Answer:
    stored = store.bucket(bucket).find(name, call.query.get("generation"))
    check(call.query, stored)
    fields = change(stored.fields)
    stored.fields = {key: fields[key] for key in SETTABLE if fields.get(key) is not None}
    stored.metageneration += 1
    stored.updated = now_text()
    store.bucket(bucket).say(name)
    return json_answer(call, stored.resource(store.origin))


def _merged(fields: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = {**fields, **changes}
    if changes.get("metadata"):
        both = {**fields.get("metadata", {}), **changes["metadata"]}
        merged["metadata"] = {key: value for key, value in both.items() if value is not None}
    return merged


def media_answer(call: Call, stored: StoredObject) -> Answer:
    """Raises RefusalError for a range that begins behind the end."""
    size = len(stored.data)
    span = _range(call.headers.get("Range", ""), size)
    if span is None:
        return Answer(headers=_headers(stored), body=stored.data)
    first, end = span
    if first >= end:
        raise range_not_satisfiable()
    headers = {**_headers(stored), "Content-Range": f"bytes {first}-{end - 1}/{size}"}
    return Answer(status=206, headers=headers, body=memoryview(stored.data)[first:end])


def _range(header: str, size: int) -> tuple[int, int] | None:
    """The first byte and the one after the last. None if the header requests all, or more than one range."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header.strip())
    if not match or header.strip() == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size
    if last and int(last) < int(first):
        return None
    return int(first), min(size, int(last) + 1) if last else size


def _headers(stored: StoredObject) -> dict[str, str]:
    named = {"cacheControl": "Cache-Control", "contentDisposition": "Content-Disposition"}
    named |= {"contentEncoding": "Content-Encoding", "contentLanguage": "Content-Language"}
    return {
        "Content-Type": stored.fields.get("contentType", "application/octet-stream"),
        "ETag": stored.etag(),
        "Last-Modified": format_datetime(datetime.fromisoformat(stored.updated), usegmt=True),
        "Accept-Ranges": "bytes",
        "X-Goog-Generation": str(stored.generation),
        "X-Goog-Metageneration": str(stored.metageneration),
        "X-Goog-Hash": stored.checksums.header(),
        "X-Goog-Stored-Content-Length": str(len(stored.data)),
        "X-Goog-Stored-Content-Encoding": stored.fields.get("contentEncoding", "identity"),
        "X-Goog-Storage-Class": "STANDARD",
        **{header: stored.fields[name] for name, header in named.items() if name in stored.fields},
    }
