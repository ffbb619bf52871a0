"""Control files on S3: entity tags with `If-Match` and `If-None-Match`, through s3fs's own connection.

An entity tag is a digest of the content: a file that returns to an earlier content returns to its generation too.
Therefore bodies that decide anything differ with every write.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import fsspec.asyn
from botocore.exceptions import BotoCoreError, ClientError

from marin_resources.storage.control.protocol import ConflictError, Snapshot, UnavailableError
from marin_resources.storage.filesystems.filesystem import filesystem_of

CONFLICTS = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404")
"""S3's codes for a refused conditional write: other content, a race of two writers, or no object to replace."""


class S3ControlFiles:
    def read(self, path: str) -> Snapshot | None:
        fs, bucket, key = _split(path)
        try:
            return fsspec.asyn.sync(fs.loop, _get, fs, bucket, key)
        except FileNotFoundError:
            return None
        except _unavailable() as error:
            raise UnavailableError(f"{path!r} cannot be read ({type(error).__name__}: {error}).") from error

    def write(self, path: str, data: bytes, expected: str | None) -> str:
        fs, bucket, key = _split(path)
        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
        try:
            return fs.call_s3("put_object", Bucket=bucket, Key=key, Body=data, **condition)["ETag"]
        except _unavailable() as error:
            if _code(error) in CONFLICTS:
                raise ConflictError(path) from None
            raise UnavailableError(f"{path!r} cannot be written ({type(error).__name__}: {error}).") from error

    def delete(self, path: str, expected: str) -> None:
        fs, bucket, key = _split(path)
        try:
            fs.call_s3("delete_object", Bucket=bucket, Key=key, IfMatch=expected)
        except FileNotFoundError:
            raise ConflictError(path) from None
        except _unavailable() as error:
            if _code(error) in CONFLICTS:
                raise ConflictError(path) from None
            raise UnavailableError(f"{path!r} cannot be removed ({type(error).__name__}: {error}).") from error


async def _get(fs: Any, bucket: str, key: str) -> Snapshot:
    answer = await fs._call_s3("get_object", Bucket=bucket, Key=key)
    async with answer["Body"] as body:
        return Snapshot(await body.read(), answer["ETag"])


def _unavailable() -> tuple[type[BaseException], ...]:
    return (OSError, BotoCoreError, aiohttp.ClientError, asyncio.TimeoutError)


def _code(error: BaseException) -> str:
    """S3's own code of an error that s3fs has translated; empty for an error that did not come from S3."""
    cause = error.__cause__
    return cause.response["Error"].get("Code", "") if isinstance(cause, ClientError) else ""


def _split(path: str) -> tuple[Any, str, str]:
    fs, place = filesystem_of(path)
    bucket, key, _ = fs.split_path(place)
    return fs, bucket, key
