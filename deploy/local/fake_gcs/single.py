"""One object: its metadata read, its content read, its fields changed, deleted."""

from __future__ import annotations

from typing import Any

from fake_gcs.call import Answer, Call, json_answer
from fake_gcs.media import media_answer
from fake_gcs.objects import SETTABLE, Store, now_text
from fake_gcs.preconditions import check


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
