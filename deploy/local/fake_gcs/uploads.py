"""Uploads in one request: the content alone (`media`), or its fields and then the content (`multipart`)."""

from __future__ import annotations

import json
from typing import Any

from fake_gcs.call import Answer, Call, Part, json_answer, parts_of
from fake_gcs.checksums import Checksums, checksums_of, promised_in_headers
from fake_gcs.objects import Data, Store, StoredObject, refuse_bad_name
from fake_gcs.preconditions import check
from fake_gcs.refusals import invalid, required

UNKNOWN_TYPE = "application/octet-stream"


async def upload_media(store: Store, call: Call, bucket: str) -> Answer:
    fields = {"contentType": call.headers.get("Content-Type", UNKNOWN_TYPE)}
    if "Content-Encoding" in call.headers:
        fields["contentEncoding"] = call.headers["Content-Encoding"]
    data = await call.read()
    stored = insert(store, call.query, bucket, name_of(call, {}), data, fields, promised_in_headers(call.headers))
    return json_answer(call, stored.resource(store.origin))


async def upload_multipart(store: Store, call: Call, bucket: str) -> Answer:
    fields, content = await multipart_of(call)
    fields.setdefault("contentType", content.headers.get("content-type", UNKNOWN_TYPE))
    promised = {**fields, **promised_in_headers(call.headers)}
    stored = insert(store, call.query, bucket, name_of(call, fields), content.data, fields, promised)
    return json_answer(call, stored.resource(store.origin))


def insert(
    store: Store,
    query: dict[str, str],
    bucket: str,
    name: str,
    data: Data,
    fields: dict[str, Any],
    promised: dict[str, Any],
    checksums: Checksums | None = None,
) -> StoredObject:
    """Write an object if the conditions in `query` hold and it is what the client promised. Raises RefusalError."""
    refuse_bad_name(name)
    check(query, store.bucket(bucket).objects.get(name))
    checksums = checksums or checksums_of(data)
    checksums.refuse_other(promised)
    return store.create(bucket, name, data, checksums, fields)


async def multipart_of(call: Call) -> tuple[dict[str, Any], Part]:
    """The fields, and the part with the content."""
    parts = parts_of(await call.read(), call.headers.get("Content-Type", ""), most=2)
    if len(parts) != 2:
        raise invalid("Multipart body must have two parts.")
    try:
        fields = json.loads(bytes(parts[0].data))
    except ValueError:
        raise invalid("Parse Error") from None
    return fields, parts[1]


def name_of(call: Call, fields: dict[str, Any]) -> str:
    name = call.query.get("name") or fields.get("name")
    if not name:
        raise required("name")
    return str(name)
