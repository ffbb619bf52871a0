"""Files of Google Cloud Storage: ranges of one generation of an object, through gcsfs's own connection.

gcsfs holds an answer in memory, so a range is requested in pieces. A piece is the most that a kill costs.
"""

from __future__ import annotations

from collections.abc import Iterator

from marin_assets.stages.download.stores.access import StoreAccess, filesystem_for
from marin_assets.stages.download.stores.source_file import SourceError, SourceFile, changed, require_range
from marin_assets.stages.download.web.faults import Fault
from marin_assets.stages.download.web.pace import Pace
from marin_assets.stages.download.web.tally import Tally
from marin_resources.storage.control.gcs import FAILURES, describe

PIECE_BYTES = 8 * 2**20


class GcsReader:
    """Reads objects. Safe for many threads."""

    def __init__(self, access: StoreAccess, tally: Tally, pace: Pace | None) -> None:
        self._access, self._tally, self._pace = access, tally, pace

    def blocks(self, file: SourceFile, start: int, end: int | None, *, whole: bool) -> Iterator[bytes]:
        """The bytes from `start` to `end`. Raises Fault and SourceError."""
        fs, place = filesystem_for(file.source, self._access)
        bucket, _, key = place.partition("/")
        kind, _, generation = file.mark.partition(" ")
        options = {"generation": generation} if kind == "generation" else {}
        assert end is not None  # every object has a size
        while start < end:
            piece = f"bytes={start}-{min(start + PIECE_BYTES, end) - 1}"
            if self._pace is not None:
                self._pace.take()
            self._tally.request()
            try:
                headers, data = fs.call(
                    "GET", "b/{}/o/{}", bucket, key, alt="media", headers={"Range": piece}, **options
                )
            except FileNotFoundError:
                raise changed(file, file.mark, "another generation, or none") from None
            except (*FAILURES, ValueError) as error:
                raise _translated(file, error) from error
            require_range(file, headers.get("Content-Range", ""), start)
            if not data:
                return
            yield bytes(data[: end - start])
            start += len(data)


def is_unpaid(error: BaseException) -> bool:
    """Whether Google refused a request because nobody pays for it."""
    return "requester pays" in str(error).lower()


def unpaid(source: str) -> SourceError:
    """The error for a bucket whose owner does not pay."""
    return SourceError(
        f"{source!r} is in a bucket whose requester pays, and no project is named. Set requester_pays=True and "
        "user_project of StoreAccess."
    )


def _translated(file: SourceFile, error: BaseException) -> Exception:
    if is_unpaid(error):
        return unpaid(file.source)
    if "Forbidden" in str(error) or getattr(error, "code", None) in (401, "401"):
        return SourceError(
            f"{file.source!r} cannot be read ({describe(error)}). Give this machine the right, or set anonymous=True "
            "of StoreAccess for a public bucket."
        )
    if getattr(error, "code", None) in (416, "416"):
        return Fault("wrong_range", "the store answered 416")
    reason = "limited" if getattr(error, "code", None) in (429, "429") else "connection"
    return Fault(reason, f"{file.source!r} cannot be read ({describe(error)})")
