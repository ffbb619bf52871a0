"""Objects made of objects: copied, rewritten, moved and composed, without their bytes leaving the store."""

from __future__ import annotations

from typing import Any

from fake_gcs.call import Answer, Call, json_answer
from fake_gcs.checksums import Checksums, checksums_of
from fake_gcs.objects import Store, StoredObject, refuse_bad_name
from fake_gcs.preconditions import check
from fake_gcs.refusals import invalid, required

MOST_SOURCES = 32


async def copy_object(store: Store, call: Call, bucket: str, name: str, to_bucket: str, to_name: str) -> Answer:
    made = _copy(store, call, await call.read_json(), (bucket, name), (to_bucket, to_name))
    return json_answer(call, made.resource(store.origin))


async def rewrite_object(store: Store, call: Call, bucket: str, name: str, to_bucket: str, to_name: str) -> Answer:
    """In one go, whatever the size, as between buckets of one place and class."""
    made = _copy(store, call, await call.read_json(), (bucket, name), (to_bucket, to_name))
    size = str(len(made.data))
    answer = {"kind": "storage#rewriteResponse", "totalBytesRewritten": size, "objectSize": size, "done": True}
    return json_answer(call, {**answer, "resource": made.resource(store.origin)})


async def move_object(store: Store, call: Call, bucket: str, name: str, to_name: str) -> Answer:
    made = _copy(store, call, {}, (bucket, name), (bucket, to_name))
    if to_name != name:
        store.bucket(bucket).remove(name)
    return json_answer(call, made.resource(store.origin))


async def compose_object(store: Store, call: Call, bucket: str, name: str) -> Answer:
    """The content of up to 32 objects, one after the other. What comes out has no MD5."""
    request = await call.read_json()
    refuse_bad_name(name)
    sources = [_source(store, bucket, source) for source in request.get("sourceObjects") or []]
    if not 1 <= len(sources) <= MOST_SOURCES:
        raise invalid(f"The number of source components provided ({len(sources)}) must be 1 to {MOST_SOURCES}.")
    check(call.query, store.bucket(bucket).objects.get(name))
    data = b"".join(source.data for source in sources)
    checksums = Checksums(crc32c=checksums_of(data).crc32c, md5=None)
    count = sum(source.component_count or 1 for source in sources)
    fields = request.get("destination") or {}
    checksums.refuse_other({key: fields[key] for key in ("crc32c",) if key in fields})
    made = store.create(bucket, name, data, checksums, fields, component_count=count)
    return json_answer(call, made.resource(store.origin))


def _copy(
    store: Store, call: Call, changes: dict[str, Any], source: tuple[str, str], target: tuple[str, str]
) -> StoredObject:
    """`changes`, if not empty, replace the fields of the source. Bytes are shared, as nothing ever changes them."""
    refuse_bad_name(target[1])
    original = store.bucket(source[0]).find(source[1], call.query.get("sourceGeneration"))
    check(call.query, original, prefix="ifSource")
    check(call.query, store.bucket(target[0]).objects.get(target[1]))
    return store.create(
        *target, original.data, original.checksums, changes or original.fields, original.component_count
    )


def _source(store: Store, bucket: str, component: dict[str, Any]) -> StoredObject:
    if "name" not in component:
        raise required("sourceObjects.name")
    generation = component.get("generation")
    original = store.bucket(bucket).find(component["name"], None if generation is None else str(generation))
    conditions = {name: str(value) for name, value in (component.get("objectPreconditions") or {}).items()}
    check(conditions, original)
    return original
