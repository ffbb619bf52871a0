"""The content of an object, whole or a range of it."""

from __future__ import annotations

import re
from datetime import datetime
from email.utils import format_datetime

from fake_gcs.call import Answer, Call
from fake_gcs.objects import StoredObject
from fake_gcs.refusals import range_not_satisfiable


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
