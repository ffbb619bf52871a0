"""Files of S3: ranges with `If-Match`, so that all are of one content, through s3fs's own connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import aiohttp
import fsspec.asyn
from botocore.exceptions import BotoCoreError, ClientError

from marin_assets.stages.download.stores.access import StoreAccess, filesystem_for
from marin_assets.stages.download.stores.source_file import SourceError, SourceFile, changed, require_range
from marin_assets.stages.download.web.faults import Fault
from marin_assets.stages.download.web.pace import Pace
from marin_assets.stages.download.web.tally import Tally

BLOCK_BYTES = 2**20
FAILURES = (OSError, BotoCoreError, ClientError, aiohttp.ClientError, asyncio.TimeoutError)


class S3Reader:
    """Reads objects. Safe for many threads."""

    def __init__(self, access: StoreAccess, tally: Tally, pace: Pace | None) -> None:
        self._access, self._tally, self._pace = access, tally, pace

    def blocks(self, file: SourceFile, start: int, end: int | None, *, whole: bool) -> Iterator[bytes]:
        """The bytes from `start` to `end`. Raises Fault and SourceError."""
        fs, place = filesystem_for(file.source, self._access)
        bucket, key, version = fs.split_path(place)
        kind, _, tag = file.mark.partition(" ")
        options: dict[str, Any] = {"IfMatch": tag} if kind == "etag" else {}
        options |= {"VersionId": version} if version else {}
        span = f"bytes={start}-{'' if end is None else end - 1}"
        if self._pace is not None:
            self._pace.take()
        self._tally.request()
        try:
            answer = fs.call_s3("get_object", Bucket=bucket, Key=key, Range=span, **options, **fs.req_kw)
        except FAILURES as error:
            raise _translated(file, error) from error
        require_range(file, answer.get("ContentRange", ""), start)
        body = answer["Body"]
        try:
            while block := fsspec.asyn.sync(fs.loop, body.read, BLOCK_BYTES):
                yield block
        except FAILURES as error:
            raise Fault("cut", f"the answer ended early ({type(error).__name__})") from error
        finally:
            body.close()


def _translated(file: SourceFile, error: BaseException) -> Exception:
    """The error or the fault of a refused request. s3fs keeps S3's own code in the cause of its error."""
    cause = error if isinstance(error, ClientError) else error.__cause__
    code = cause.response["Error"].get("Code", "") if isinstance(cause, ClientError) else ""
    if isinstance(error, FileNotFoundError) or code in ("NoSuchKey", "404"):
        return changed(file, file.mark, "an object that was removed")
    if code in ("PreconditionFailed", "412"):
        return changed(file, file.mark, "another entity tag")
    if isinstance(error, PermissionError):
        return SourceError(
            f"{file.source!r} cannot be read: {error}. Give this machine the right, or set anonymous=True or "
            "requester_pays=True of StoreAccess."
        )
    if code in ("InvalidRange", "416"):
        return Fault("wrong_range", "the store answered 416")
    reason = "limited" if code in ("SlowDown", "429", "TooManyRequests") else "connection"
    return Fault(reason, f"{file.source!r} cannot be read ({type(error).__name__}: {' '.join(str(error).split())})")
