"""Control files on Google Cloud Storage: generations and `ifGenerationMatch`, through gcsfs's own connection.

gcsfs itself offers "create if absent" alone. `GCSFileSystem.call` is its public door to the JSON API, with its
credentials and its retries (six, with growing pauses).
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import aiohttp
import google.auth.exceptions
import requests.exceptions
from gcsfs.retry import ChecksumError, HttpError

from marin_resources.storage.control.protocol import ConflictError, Snapshot, UnavailableError
from marin_resources.storage.filesystem import filesystem_of

UNAVAILABLE = (
    HttpError,
    ChecksumError,
    aiohttp.ClientError,
    asyncio.TimeoutError,
    requests.exceptions.RequestException,
    google.auth.exceptions.GoogleAuthError,
)
ABSENT = "0"
"""The generation of what is not there, in Google's words."""


class GcsControlFiles:
    def read(self, path: str) -> Snapshot | None:
        fs, bucket, key = _split(path)
        try:
            headers, data = fs.call("GET", "b/{}/o/{}", bucket, key, alt="media")
        except FileNotFoundError:
            return None
        except UNAVAILABLE as error:
            raise UnavailableError(f"{path!r} cannot be read ({type(error).__name__}: {error}).") from error
        return Snapshot(bytes(data), headers["X-Goog-Generation"])

    def write(self, path: str, data: bytes, expected: str | None) -> str:
        fs, bucket, key = _split(path)
        url = fs.base.replace("/storage/v1/", "/upload/storage/v1/") + f"b/{quote(bucket, safe='')}/o"
        try:
            answer = fs.call(
                "POST",
                url,
                uploadType="media",
                name=key,
                ifGenerationMatch=expected or ABSENT,
                headers={"Content-Type": "application/octet-stream"},
                data=data,
                json_out=True,
            )
        except FileExistsError:  # gcsfs's word for 412, a precondition that does not hold
            raise ConflictError(path) from None
        except UNAVAILABLE as error:
            raise UnavailableError(f"{path!r} may not be written ({type(error).__name__}: {error}).") from error
        return answer["generation"]

    def delete(self, path: str, expected: str) -> None:
        fs, bucket, key = _split(path)
        try:
            fs.call("DELETE", "b/{}/o/{}", bucket, key, ifGenerationMatch=expected)
        except (FileExistsError, FileNotFoundError):
            raise ConflictError(path) from None
        except UNAVAILABLE as error:
            raise UnavailableError(f"{path!r} may not be removed ({type(error).__name__}: {error}).") from error


def _split(path: str) -> tuple[Any, str, str]:
    fs, place = filesystem_of(path)
    bucket, _, key = place.partition("/")
    return fs, bucket, key
