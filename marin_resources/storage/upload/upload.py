"""Put a local file's bytes into a bucket as one object: whole and as they are, or not at all.

In:  a path in a bucket, and an open local file.   Out: the object; or an error, and what was there before.

The bytes' md5 goes along, and the store refuses what has been damaged on the way. A response may be lost after the
object is there: an object with these very bytes counts as written, whoever has put it there.
"""

from __future__ import annotations

import hashlib
import mimetypes
from typing import IO

from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.disk import already_exists
from marin_resources.storage.paths import StoreKind, kind_of
from marin_resources.storage.upload.protocol import Body, Target

TRIES = 3
"""Each of them with the retries of the store's own client. An upload that its server has forgotten begins anew."""
READ_BYTES = 1024**2


def upload(path: str, file: IO[bytes], *, replace: bool) -> None:
    """Make the object at `path` of all that is in `file`.

    Raises FileExistsError if `replace` is false and an object with other bytes is there, UnavailableError if the store
    does not take it.
    """
    target, body = _target(path), _body(file)
    content_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    for _ in range(TRIES):
        try:
            return target.put(body, content_type, replace=replace)
        except target.errors as error:
            problem = error
        found = _digest(path, target)
        if found == (body.size_bytes, body.md5.hex()):
            return None
        if found is not None and not replace:
            raise already_exists(path) from problem
    raise UnavailableError(
        f"{path!r} ({body.size_bytes:,} bytes) cannot be uploaded ({type(problem).__name__}: {problem}). "
        "Run again when the reason is gone."
    ) from problem


def _digest(path: str, target: Target) -> tuple[int, str] | None:
    try:
        return target.digest()
    except target.errors as error:
        raise UnavailableError(f"{path!r} may not be written ({type(error).__name__}: {error}).") from error


def _body(file: IO[bytes]) -> Body:
    file.seek(0)
    md5 = hashlib.md5(usedforsecurity=False)
    while chunk := file.read(READ_BYTES):
        md5.update(chunk)
    return Body(file=file, size_bytes=file.tell(), md5=md5.digest())


def _target(path: str) -> Target:
    """The late imports break a weight, not a circle: a bucket's client takes a second to load."""
    match kind_of(path):
        case StoreKind.GCS:
            from marin_resources.storage.upload.gcs import GcsObject

            return GcsObject(path)
        case StoreKind.S3:
            from marin_resources.storage.upload.s3 import S3Object

            return S3Object(path)
    from marin_resources.storage.upload.other import OtherObject

    return OtherObject(path)
