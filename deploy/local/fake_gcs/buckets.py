"""Buckets: created, read, changed, removed when they are empty."""

from __future__ import annotations

from typing import Any

from fake_gcs.call import Answer, Call, json_answer
from fake_gcs.objects import Store
from fake_gcs.preconditions import check_bucket
from fake_gcs.refusals import conflict, no_user_project, required

OWN = ("kind", "id", "name", "metageneration", "etag")


async def list_buckets(store: Store, call: Call) -> Answer:
    prefix = call.query.get("prefix", "")
    items = [store.buckets[name].resource() for name in sorted(store.buckets) if name.startswith(prefix)]
    return json_answer(call, {"kind": "storage#buckets", "items": items})


async def create_bucket(store: Store, call: Call) -> Answer:
    fields = await call.read_json()
    if not fields.get("name"):
        raise required("name")
    return json_answer(call, store.create_bucket(fields["name"], _settable(fields)).resource())


async def get_bucket(store: Store, call: Call, name: str) -> Answer:
    bucket = store.bucket(name)
    check_bucket(call.query, bucket)
    return json_answer(call, bucket.resource())


async def patch_bucket(store: Store, call: Call, name: str) -> Answer:
    fields, bucket = await call.read_json(), store.bucket(name)
    check_bucket(call.query, bucket)
    bucket.fields |= _settable(fields)
    bucket.metageneration += 1
    bucket.say(None)
    return json_answer(call, bucket.resource())


async def delete_bucket(store: Store, call: Call, name: str) -> Answer:
    bucket = store.bucket(name)
    check_bucket(call.query, bucket)
    if bucket.objects:
        raise conflict("The bucket you tried to delete is not empty.")
    del store.buckets[name]
    bucket.removed = True
    bucket.say(None)
    return Answer(status=204)


def require_payer(store: Store, call: Call, *names: str) -> None:
    """Raise RefusalError if no project pays for a request about a bucket with `billing.requesterPays`."""
    bucket = store.buckets.get(names[0]) if names else None
    billing = bucket.fields.get("billing") or {} if bucket is not None else {}
    if billing.get("requesterPays") and not call.query.get("userProject"):
        raise no_user_project()


def _settable(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in OWN and value is not None}
