"""A page of the objects of a bucket, in the order of their names."""

from __future__ import annotations

import base64
import binascii
import bisect
from typing import Any

from fake_gcs.call import Answer, Call, json_answer
from fake_gcs.objects import Bucket, Store
from fake_gcs.refusals import invalid, not_implemented

PAGE = 1000
"""The limit of one page, and its size by default."""
LAST = "\U0010ffff"


async def list_objects(store: Store, call: Call, bucket: str) -> Answer:
    for parameter in ("matchGlob", "softDeleted", "filter"):
        if parameter in call.query:
            raise not_implemented(f"the parameter '{parameter}' of a listing")
    place = store.bucket(bucket)
    items, prefixes, rest = _page(place, call.query)
    answer: dict[str, Any] = {"kind": "storage#objects"}
    if rest is not None:
        answer["nextPageToken"] = base64.urlsafe_b64encode(rest.encode()).decode()
    if prefixes:
        answer["prefixes"] = prefixes
    if items:
        answer["items"] = [place.objects[name].resource(store.origin) for name in items]
    return json_answer(call, answer)


def _page(bucket: Bucket, query: dict[str, str]) -> tuple[list[str], list[str], str | None]:
    """Names, prefixes, and the name that the next page begins with."""
    prefix, delimiter, end = query.get("prefix", ""), query.get("delimiter", ""), query.get("endOffset", "")
    items: list[str] = []
    prefixes: list[str] = []
    names, limit = bucket.names, _limit(query)
    at = bisect.bisect_left(names, max(prefix, query.get("startOffset", ""), _token(query)))
    while at < len(names) and names[at].startswith(prefix) and not (end and names[at] >= end):
        name = names[at]
        if len(items) + len(prefixes) >= limit:
            return items, prefixes, name
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        if cut < 0:
            items.append(name)
            at += 1
        else:
            folder = name[: cut + len(delimiter)]
            prefixes.append(folder)
            if query.get("includeTrailingDelimiter") == "true" and folder in bucket.objects:
                items.append(folder)
            at = bisect.bisect_left(names, folder + LAST)
    return items, prefixes, None


def _limit(query: dict[str, str]) -> int:
    limit = query.get("maxResults", str(PAGE))
    if not limit.isdigit():
        raise invalid(f"Invalid unsigned integer value: '{limit}'.", location="maxResults")
    return min(int(limit) or PAGE, PAGE)


def _token(query: dict[str, str]) -> str:
    try:
        return base64.urlsafe_b64decode(query.get("pageToken", "")).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise invalid("Invalid Value", location="pageToken") from None
