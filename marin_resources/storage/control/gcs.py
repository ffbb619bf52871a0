"""Control files on Google Cloud Storage: generations and `ifGenerationMatch`, through gcsfs's own connection.

gcsfs itself offers only "create if absent". `GCSFileSystem.call` is its public access to the JSON API, with its
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
from marin_resources.storage.filesystems.filesystem import filesystem_of

UNAVAILABLE = (
    HttpError,
    ChecksumError,
    aiohttp.ClientError,
    asyncio.TimeoutError,
    requests.exceptions.RequestException,
    google.auth.exceptions.GoogleAuthError,
)
FAILURES = (*UNAVAILABLE, OSError)
"""gcsfs raises a bare OSError for 403. For 404 and 412 it raises classes of it, which mean something of their own and
are caught before."""
ABSENT = "0"
"""Google's generation of an object that does not exist."""


class GcsControlFiles:
    def read(self, path: str) -> Snapshot | None:
        fs, bucket, key = object_at(path)
        try:
            headers, data = fs.call("GET", "b/{}/o/{}", bucket, key, alt="media")
        except FileNotFoundError:
            return None
        except FAILURES as error:
            raise UnavailableError(f"{path!r} cannot be read ({describe(error)}).") from error
        return Snapshot(bytes(data), headers["X-Goog-Generation"])

    def write(self, path: str, data: bytes, expected: str | None) -> str:
        fs, bucket, key = object_at(path)
        try:
            answer = fs.call(
                "POST",
                upload_url(fs, bucket),
                uploadType="media",
                name=key,
                ifGenerationMatch=expected or ABSENT,
                headers={"Content-Type": "application/octet-stream"},
                data=data,
                json_out=True,
            )
        except FileExistsError:  # gcsfs raises it for 412: the precondition does not hold
            raise ConflictError(path) from None
        except FileNotFoundError:  # an upload needs nothing but the bucket
            raise UnavailableError(
                f"{path!r} cannot be written: the bucket {bucket!r} does not exist. Create it, or correct MARIN_PREFIX."
            ) from None
        except FAILURES as error:
            raise UnavailableError(f"{path!r} cannot be written ({describe(error)}).") from error
        return answer["generation"]

    def delete(self, path: str, expected: str) -> None:
        fs, bucket, key = object_at(path)
        try:
            fs.call("DELETE", "b/{}/o/{}", bucket, key, ifGenerationMatch=expected)
        except (FileExistsError, FileNotFoundError):
            raise ConflictError(path) from None
        except FAILURES as error:
            raise UnavailableError(f"{path!r} cannot be removed ({describe(error)}).") from error


def describe(error: BaseException) -> str:
    """One line: gcsfs puts Google's own message on a second one."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def object_at(path: str) -> tuple[Any, str, str]:
    """The filesystem, bucket and key of a "gs://" path."""
    fs, place = filesystem_of(path)
    bucket, _, key = place.partition("/")
    return fs, bucket, key


def upload_url(fs: Any, bucket: str) -> str:
    """The address that takes new objects of a bucket."""
    return fs.base.replace("/storage/v1/", "/upload/storage/v1/") + f"b/{quote(bucket, safe='')}/o"
