"""Resumable uploads: a session, chunks at its address, and an object after the last byte.

Conditions are not checked when the session begins, as GCS does not, but when it ends: an upload that began with
`ifGenerationMatch=0` and ends after somebody else has written the object is refused with 412. Of a chunk that is not
the last, and of one whose connection broke, whole blocks of 256 KiB stay and the rest is forgotten.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from fake_gcs.call import Answer, Call, json_answer
from fake_gcs.checksums import RunningChecksums, promised_in_headers
from fake_gcs.objects import Store, StoredObject, refuse_bad_name
from fake_gcs.preconditions import of_request
from fake_gcs.refusals import RefusalError, invalid, required
from fake_gcs.uploads import UNKNOWN_TYPE, insert, name_of

BLOCK = 256 * 1024
CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+|\*)|\*)/(\d+|\*)")


@dataclass(kw_only=True)
class Session:
    bucket: str
    name: str
    conditions: dict[str, str]
    fields: dict[str, Any]
    data: bytearray = field(default_factory=bytearray)
    """The bytes that have come; the object's own data at the end, so that it is never in memory twice."""
    checksums: RunningChecksums = field(default_factory=RunningChecksums)
    summed: int = 0
    """Bytes of `data` that are in `checksums`."""
    resource: dict[str, Any] | None = None
    """The object, once it is complete: a client that lost the answer repeats the request."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A client that gave up on a chunk may send it again while the first is still being read."""

    def add(self, piece: bytes) -> None:
        self.data += piece
        self.sum_up(len(self.data) - len(self.data) % BLOCK)

    def sum_up(self, end: int) -> None:
        if end > self.summed:
            with memoryview(self.data)[self.summed : end] as view:
                self.checksums.update(view)
            self.summed = end

    def keep_whole_blocks(self) -> None:
        del self.data[len(self.data) - len(self.data) % BLOCK :]


class Sessions:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions: dict[str, Session] = {}

    async def begin(self, call: Call, bucket: str) -> Answer:
        fields = await call.read_json()
        self._store.bucket(bucket)
        name = name_of(call, fields)
        refuse_bad_name(name)
        fields.setdefault("contentType", call.headers.get("X-Upload-Content-Type", UNKNOWN_TYPE))
        key, conditions = uuid.uuid4().hex, of_request(call.query)
        self._sessions[key] = Session(bucket=bucket, name=name, conditions=conditions, fields=fields)
        query = urlencode({"uploadType": "resumable", "name": name, "upload_id": key, **conditions})
        location = f"{self._store.origin}/upload/storage/v1/b/{bucket}/o?{query}"
        return Answer(headers={"Location": location, "X-GUploader-UploadID": key})

    def find(self, call: Call) -> Session:
        if "upload_id" not in call.query:
            raise required("upload_id")
        if call.query["upload_id"] not in self._sessions:
            raise RefusalError(404, "notFound", "Invalid upload ID.")
        return self._sessions[call.query["upload_id"]]

    def cancel(self, call: Call) -> Answer:
        self.find(call)
        del self._sessions[call.query["upload_id"]]
        return Answer(status=499)

    async def receive(self, call: Call) -> Answer:
        """A chunk, or a query for the bytes that have come."""
        session = self.find(call)
        async with session.turn:
            if session.resource is None:
                if not await _is_complete(session, call):
                    return _how_far(session)
                session.resource = self._finish(session, call).resource(self._store.origin)
                session.data = bytearray()
            await call.read()
            return json_answer(call, session.resource)

    def forget(self, bucket: str) -> None:
        self._sessions = {key: session for key, session in self._sessions.items() if session.bucket != bucket}

    def _finish(self, session: Session, call: Call) -> StoredObject:
        session.sum_up(len(session.data))
        promised = {**session.fields, **promised_in_headers(call.headers)}
        return insert(
            self._store,
            session.conditions,
            session.bucket,
            session.name,
            session.data,
            session.fields,
            promised,
            session.checksums.value(),
        )


async def _is_complete(session: Session, call: Call) -> bool:
    """Read a chunk into the session; whether it was the last."""
    header = call.headers.get("Content-Range")
    match = CONTENT_RANGE.fullmatch(header) if header else None
    if header and not match:
        raise invalid(f"Failed to parse Content-Range header: '{header}'.", location="Content-Range")
    first, last, total = match.groups() if match else ("0", None, "*")
    if first is not None:
        await _take(session, call, int(first))
    if last not in (None, "*") and len(session.data) <= int(last):
        session.keep_whole_blocks()
        raise invalid(f"Invalid request. The content ends before the byte {last} that Content-Range announced.")
    if total != "*" and len(session.data) > int(total):
        raise invalid(f"Invalid request. There were more bytes than the {total} announced.")
    is_last = header is None or total == str(len(session.data))
    if not is_last:
        session.keep_whole_blocks()
    return is_last


async def _take(session: Session, call: Call, first: int) -> None:
    """Append what comes; bytes that are here already are ignored."""
    if first > len(session.data):
        raise invalid(f"Invalid request. According to the Content-Range header, the upload offset is {first} byte(s).")
    skipped = len(session.data) - first
    try:
        async for piece in call.pieces:
            session.add(piece[skipped:])
            skipped = max(skipped - len(piece), 0)
    except BaseException:  # a connection that is cut too: Google keeps whole blocks of what has come
        session.keep_whole_blocks()
        raise


def _how_far(session: Session) -> Answer:
    size = len(session.data)
    return Answer(status=308, headers={"Range": f"bytes=0-{size - 1}"} if size else {})
