"""Upload to Google Cloud Storage: small bodies in one request, others in a resumable session.

gcsfs's own writers share state between threads, or lose the reason of a failure. So only its `call` is used, with its
credentials and its retries. The md5 is sent before the bytes, so Google checks it before the object appears.
"""

from __future__ import annotations

import base64
import json
import uuid
from contextlib import suppress
from typing import Any

from marin_resources.storage import fault_points
from marin_resources.storage.control.gcs import ABSENT, UNAVAILABLE, object_at, upload_url
from marin_resources.storage.upload.protocol import Body
from marin_resources.storage.upload.writer import stamp

ONE_REQUEST_BYTES = 8 * 1024**2
CHUNK_BYTES = 32 * 1024**2
"""Bytes of one request of a session; held in memory. Google requires a multiple of 256 KiB."""


class GcsObject:
    errors: tuple[type[BaseException], ...] = (*UNAVAILABLE, FileExistsError, FileNotFoundError)

    def __init__(self, path: str) -> None:
        self._fs, self._bucket, self._key = object_at(path)
        self._url = upload_url(self._fs, self._bucket)

    def put(self, body: Body, content_type: str, *, replace: bool) -> None:
        md5 = base64.b64encode(body.md5).decode()
        about = {"name": self._key, "contentType": content_type, "md5Hash": md5, "metadata": stamp()}
        condition = {} if replace else {"ifGenerationMatch": ABSENT}
        if body.size_bytes <= ONE_REQUEST_BYTES:
            self._put_at_once(body, about, condition)
        else:
            self._put_in_chunks(body, about, condition)

    def digest(self) -> tuple[int, str] | None:
        try:
            metadata = self._fs.call("GET", "b/{}/o/{}", self._bucket, self._key, json_out=True)
        except FileNotFoundError:
            return None
        return int(metadata["size"]), base64.b64decode(metadata.get("md5Hash", "")).hex()

    def _put_at_once(self, body: Body, about: dict[str, Any], condition: dict[str, str]) -> None:
        boundary = uuid.uuid4().hex.encode()  # random, so that no body contains it
        head = b"Content-Type: application/json; charset=UTF-8\r\n\r\n" + json.dumps(about).encode()
        main = f"Content-Type: {about['contentType']}\r\n\r\n".encode() + body.read(0, body.size_bytes)
        between = b"\r\n--" + boundary
        self._fs.call(
            "POST",
            self._url,
            uploadType="multipart",
            headers={"Content-Type": f"multipart/related; boundary={boundary.decode()}"},
            data=b"".join([b"--", boundary, b"\r\n", head, between, b"\r\n", main, between, b"--\r\n"]),
            **condition,
        )

    def _put_in_chunks(self, body: Body, about: dict[str, Any], condition: dict[str, str]) -> None:
        headers, _ = self._fs.call("POST", self._url, uploadType="resumable", json=about, **condition)
        session = headers["Location"]
        try:
            self._send(session, body)
        except BaseException:
            self._cancel(session)
            raise

    def _cancel(self, session: str) -> None:
        """Cancel the session. Its address repeats the condition, which must not apply to the cancellation."""
        with suppress(*self.errors):  # Google drops the session after a week; the caller raises the error that matters
            self._fs.call("DELETE", session.replace(f"&ifGenerationMatch={ABSENT}", ""))

    def _send(self, session: str, body: Body) -> None:
        offset = 0
        while offset < body.size_bytes:
            chunk = body.read(offset, CHUNK_BYTES)
            place = f"bytes {offset}-{offset + len(chunk) - 1}/{body.size_bytes}"
            headers, answer = self._fs.call("PUT", session, headers={"Content-Range": place}, data=chunk)
            if answer:
                return
            offset = _received(headers)
            fault_points.reach("file half written")


def _received(headers: Any) -> int:
    """Bytes that the session has received; it may have accepted only a part of a chunk."""
    return int(headers["Range"].rpartition("-")[2]) + 1 if "Range" in headers else 0
