"""Upload to S3: small bodies in one request, others in parts that become an object with the last request.

The client sends a checksum with every request, which S3 checks. Our md5 is stored in the object's metadata: its entity
tag is an md5 only if it was uploaded in one request and is not encrypted with a customer's key.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import aiohttp
from botocore.exceptions import BotoCoreError

from marin_resources.storage import fault_points
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.upload.protocol import Body
from marin_resources.storage.upload.writer import stamp

ONE_REQUEST_BYTES = 16 * 1024**2
PART_BYTES = 32 * 1024**2
"""Held in memory."""
MAX_PARTS = 10_000
MD5 = "marin-md5"
"""The name of our md5 in the object's metadata."""


class S3Object:
    errors: tuple[type[BaseException], ...] = (OSError, BotoCoreError, aiohttp.ClientError, asyncio.TimeoutError)

    def __init__(self, path: str) -> None:
        self._fs, place = filesystem_of(path)
        bucket, key, _ = self._fs.split_path(place)
        self._at = {"Bucket": bucket, "Key": key}

    def put(self, body: Body, content_type: str, *, replace: bool) -> None:
        about = {"ContentType": content_type, "Metadata": {MD5: body.md5.hex(), **stamp()}}
        condition = {} if replace else {"IfNoneMatch": "*"}
        if body.size_bytes <= ONE_REQUEST_BYTES:
            self._call("put_object", Body=body.read(0, body.size_bytes), **about, **condition)
        else:
            self._put_in_parts(body, about, condition)

    def digest(self) -> tuple[int, str] | None:
        try:
            head = self._call("head_object")
        except FileNotFoundError:
            return None
        return int(head["ContentLength"]), head.get("Metadata", {}).get(MD5) or head["ETag"].strip('"')

    def _put_in_parts(self, body: Body, about: dict[str, Any], condition: dict[str, str]) -> None:
        upload = {"UploadId": self._call("create_multipart_upload", **about)["UploadId"]}
        part_bytes = max(PART_BYTES, -(-body.size_bytes // MAX_PARTS))
        try:
            parts = [self._put_part(n, part, upload) for n, part in enumerate(body.parts(part_bytes), start=1)]
            self._call("complete_multipart_upload", MultipartUpload={"Parts": parts}, **upload, **condition)
        except BaseException:
            self._cancel(upload)
            raise

    def _put_part(self, number: int, part: bytes, upload: dict[str, str]) -> dict[str, Any]:
        answer = self._call("upload_part", PartNumber=number, Body=part, **upload)
        fault_points.reach("file half written")
        return {"PartNumber": number, "ETag": answer["ETag"]}

    def _cancel(self, upload: dict[str, str]) -> None:
        with suppress(*self.errors):  # the caller raises the error that matters; lifecycle rules may remove the parts
            self._call("abort_multipart_upload", **upload)

    def _call(self, method: str, **arguments: Any) -> Any:
        return self._fs.call_s3(method, **self._at, **arguments)
