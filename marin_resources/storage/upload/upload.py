"""Upload a local file's bytes to a bucket as one object, whole and unchanged, or not at all.

In:  a path in a bucket, and an open local file.   Out: the object; or an error, and the previous object unchanged.

The md5 is sent with the bytes, and the store refuses a damaged upload. The response may be lost after the object was
written: an object with these bytes counts as written, whichever process wrote it.
"""

from __future__ import annotations

import hashlib
import mimetypes
from typing import IO

from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.filesystems.disk import already_exists
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import StoreKind, kind_of
from marin_resources.storage.upload.protocol import Body, Target
from marin_resources.storage.upload.writer import require_lease

TRIES = 3
"""Each with the retries of the store's own client. An upload session that the server has dropped starts again."""
READ_BYTES = 1024**2


PART_BYTES = 8 * 1024**2


def upload(path: str, file: IO[bytes], *, replace: bool) -> None:
    """Write the whole content of `file` to the object at `path`.

    Raises FileExistsError if `replace` is false and an object with other bytes exists, UnavailableError if the store
    does not accept it, and LeaseLostError if this process may no longer write for its attempt.
    """
    target, body = _target(path), _body(file)
    content_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    for _ in range(TRIES):
        require_lease()
        try:
            return target.put(body, content_type, replace=replace)
        except target.errors as error:
            problem = error
        digest = _digest(path, target)
        if digest == (body.size_bytes, body.md5.hex()):
            return None
        if digest is not None and not replace:
            raise already_exists(path) from problem
    raise UnavailableError(
        f"{path!r} ({body.size_bytes:,} bytes) cannot be uploaded ({type(problem).__name__}: {problem}). "
        "Fix the cause and run again."
    ) from problem


def _digest(path: str, target: Target) -> tuple[int, str] | None:
    try:
        return target.digest()
    except target.errors as error:
        raise UnavailableError(f"{path!r} cannot be written ({type(error).__name__}: {error}).") from error


def _body(file: IO[bytes]) -> Body:
    file.seek(0)
    md5 = hashlib.md5(usedforsecurity=False)
    while chunk := file.read(READ_BYTES):
        md5.update(chunk)
    return Body(file=file, size_bytes=file.tell(), md5=md5.digest())


def _target(path: str) -> Target:
    """Imports are late because a bucket's client takes a second to load, not because of a cycle."""
    match kind_of(path):
        case StoreKind.GCS:
            from marin_resources.storage.upload.gcs import GcsObject

            return GcsObject(path)
        case StoreKind.S3:
            from marin_resources.storage.upload.s3 import S3Object

            return S3Object(path)

    return OtherObject(path)


class OtherObject:
    errors: tuple[type[BaseException], ...] = (OSError,)

    def __init__(self, path: str) -> None:
        self._fs, self._place = filesystem_of(path)

    def put(self, body: Body, content_type: str, *, replace: bool) -> None:
        with self._fs.open(self._place, "wb" if replace else "xb") as file:
            for part in body.parts(PART_BYTES):
                file.write(part)

    def digest(self) -> tuple[int, str] | None:
        if not self._fs.exists(self._place):
            return None
        with self._fs.open(self._place, "rb") as file:
            md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
            return file.tell(), md5.hexdigest()
