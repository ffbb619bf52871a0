"""Upload to Google Cloud Storage: small bodies in one request, others in a resumable session.

gcsfs's own writers keep their state where threads share it, or lose the reason of a failure; its `call` is used, with
its credentials and its retries. The md5 is told before the bytes, so Google checks it before the object appears.
"""

from __future__ import annotations

import base64
import json
import uuid
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from marin_resources.storage import fault_points
from marin_resources.storage.control.gcs import ABSENT, UNAVAILABLE
from marin_resources.storage.filesystem import filesystem_of
from marin_resources.storage.upload.protocol import Body

ONE_REQUEST_BYTES = 8 * 1024**2
CHUNK_BYTES = 32 * 1024**2
"""Of a session; held in memory. A multiple of 256 kB, as Google wants it."""


class GcsObject:
    errors: tuple[type[BaseException], ...] = (*UNAVAILABLE, FileExistsError, FileNotFoundError)

    def __init__(self, path: str) -> None:
        self._fs, place = filesystem_of(path)
        self._bucket, _, self._key = place.partition("/")
        url = self._fs.base.replace("/storage/v1/", "/upload/storage/v1/")
        self._url = f"{url}b/{quote(self._bucket, safe='')}/o"

    def put(self, body: Body, content_type: str, *, replace: bool) -> None:
        about = {"name": self._key, "contentType": content_type, "md5Hash": base64.b64encode(body.md5).decode()}
        condition = {} if replace else {"ifGenerationMatch": ABSENT}
        if body.size_bytes <= ONE_REQUEST_BYTES:
            self._put_at_once(body, about, condition)
        else:
            self._put_in_chunks(body, about, condition)

    def digest(self) -> tuple[int, str] | None:
        try:
            found = self._fs.call("GET", "b/{}/o/{}", self._bucket, self._key, json_out=True)
        except FileNotFoundError:
            return None
        return int(found["size"]), base64.b64decode(found.get("md5Hash", "")).hex()

    def _put_at_once(self, body: Body, about: dict[str, str], condition: dict[str, str]) -> None:
        boundary = uuid.uuid4().hex.encode()  # by chance, so that no body holds it
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

    def _put_in_chunks(self, body: Body, about: dict[str, str], condition: dict[str, str]) -> None:
        headers, _ = self._fs.call("POST", self._url, uploadType="resumable", json=about, **condition)
        session = headers["Location"]
        try:
            self._send(session, body)
        except BaseException:
            self._forget(session)
            raise

    def _forget(self, session: str) -> None:
        """A session's address repeats its condition, which has nothing to do with forgetting it."""
        with suppress(*self.errors):  # then it is forgotten in a week; what went wrong is told by the error before
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
    """Bytes that the session has; it may have taken a part of a chunk only."""
    return int(headers["Range"].rpartition("-")[2]) + 1 if "Range" in headers else 0
