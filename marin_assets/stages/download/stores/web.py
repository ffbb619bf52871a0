"""Files of servers: their size and mark by HEAD, and ranges with `If-Match`, so that all are of one content.

A server that ignores the condition is noticed by the mark in its answer; one whose answers have no mark, by a HEAD
after each range.
"""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from marin_assets.stages.download.stores.access import StoreAccess
from marin_assets.stages.download.stores.source_file import MissingFileError, SourceError, SourceFile, changed, mark_of
from marin_assets.stages.download.web.answers import IDENTITY, body_of, checked_start
from marin_assets.stages.download.web.client import Client
from marin_assets.stages.download.web.faults import Fault, persist
from marin_assets.stages.download.web.pace import Pace
from marin_assets.stages.download.web.tally import Tally
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import requests

T = TypeVar("T")

MARKS = {"etag": "ETag", "content-md5": "Content-MD5", "last-modified": "Last-Modified"}
"""Mark -> header."""
NO_HEAD = (400, 403, 405, 501)
"""Answers of servers and of signed addresses that refuse HEAD alone."""
PACKED = (".gz", ".tgz")
"""Endings of files that servers send with the encoding in which they are stored."""


class WebReader:
    """Reads files of servers. Safe for many threads."""

    def __init__(self, access: StoreAccess, output_path: str, tally: Tally, stop: threading.Event) -> None:
        self._tally, self._stop = tally, stop
        self._paces: dict[str, Pace] = {}
        self._lock = threading.Lock()
        self._access, self._output_path = access, output_path
        self._client = Client(
            tally=tally, stop=stop, max_connections=access.max_connections, refused=_refused, pace=self._pace
        )

    def info(self, url: str) -> dict[str, Any]:
        """Size and mark of a file, as fsspec spells them. Raises MissingFileError, SourceError and DownloadError."""
        return self._persist(lambda: self._info(url), url)

    def content(self, url: str, most_bytes: int) -> bytes:
        """The content of a small file. Raises MissingFileError, SourceError and DownloadError."""

        def read() -> bytes:
            content = bytearray()
            with self._client.answer("GET", url, {}) as answer:
                size = answer.headers.get("Content-Length", "")
                for block in body_of(answer):
                    content += block
                    if len(content) > most_bytes:
                        raise SourceError(f"{url!r} has over {most_bytes} bytes, expected a list. Correct the address.")
            if size.isdecimal() and len(content) < int(size):
                raise Fault("cut", f"the answer ended at byte {len(content)}, expected {size}")
            return bytes(content)

        return self._persist(read, url)

    def blocks(self, file: SourceFile, start: int, end: int | None, *, whole: bool) -> Iterator[bytes]:
        """The bytes from `start` to `end`, the file's end if `whole`. Raises Fault and SourceError."""
        headers = _condition(file.mark)
        if start or not whole:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        with self._client.answer("GET", file.source, headers, (200, 206, 412)) as answer:
            if answer.status_code == 412:
                raise changed(file, file.mark, mark_of(answer.headers) or "another state, by 412 of the server")
            is_marked = _require_mark(file, answer)
            skip = checked_start(answer, file.size_bytes, start, whole=whole, encodings=_encodings(file.source))
            has_end = "Content-Length" in answer.headers
            rest = None if end is None else end - start
            if end is None:
                rest = _require_end(file, answer)
            for block in body_of(answer):
                taken = block[skip:] if rest is None else block[skip : skip + rest]
                if rest is not None and not has_end and len(block) > skip + rest:
                    raise Fault("wrong_size", f"the server sent more than the {file.size_bytes} bytes of the listing")
                skip, rest = max(0, skip - len(block)), None if rest is None else rest - len(taken)
                if taken:
                    yield taken
                if rest == 0 and has_end:
                    break
            if rest and end is None:
                raise Fault("cut", f"the answer ended {rest} bytes early")
        if file.mark and not is_marked:
            now = mark_of(self._info(file.source))
            if now != file.mark:
                raise changed(file, file.mark, now)

    def _persist(self, action: Callable[[], T], url: str) -> T:
        return persist(action, subject=f"The file {url!r}", tally=self._tally, stop=self._stop)

    def _pace(self, origin: str) -> Pace:
        with self._lock:
            if origin not in self._paces:
                per_second = self._access.max_requests_per_s
                self._paces[origin] = Pace(self._output_path, origin, per_second, self._stop)
            return self._paces[origin]

    def _info(self, url: str) -> dict[str, Any]:
        with self._client.answer("HEAD", url, {}, (200, *NO_HEAD)) as answer:
            if answer.status_code == 200:
                return _info_of(url, answer, answer.headers.get("Content-Length", ""))
        with self._client.answer("GET", url, {"Range": "bytes=0-0"}, (200, 206, 416)) as answer:
            size = answer.headers.get("Content-Length", "")
            if answer.status_code != 200:
                size = answer.headers.get("Content-Range", "").rpartition("/")[2]
            return _info_of(url, answer, size)


def _info_of(url: str, answer: requests.Response, size: str) -> dict[str, Any]:
    is_encoded = answer.headers.get("Content-Encoding", "identity") not in _encodings(url)
    marks = {header: answer.headers[header] for header in MARKS.values() if header in answer.headers}
    return {"name": url, "type": "file", "size": int(size) if size.isdecimal() and not is_encoded else None, **marks}


def _encodings(url: str) -> tuple[str, ...]:
    ending = posixpath.splitext(urlsplit(url).path)[1].lower()
    return (*IDENTITY, "gzip", "x-gzip") if ending in PACKED else IDENTITY


def _condition(mark: str) -> dict[str, str]:
    kind, _, value = mark.partition(" ")
    if kind == "etag" and not value.startswith("W/"):  # a weak tag matches nothing
        return {"If-Match": value}
    return {"If-Unmodified-Since": value} if kind == "last-modified" else {}


def _require_end(file: SourceFile, answer: requests.Response) -> int | None:
    """The length of an answer of unknown size; None if chunks mark its end. Raises SourceError if nothing does."""
    length = answer.headers.get("Content-Length", "")
    if length.isdecimal():
        return int(length)
    if not file.expected and "chunked" not in answer.headers.get("Transfer-Encoding", "").lower():
        raise SourceError(
            f"The server sends {file.source!r} without a length and without chunks, so a cut file would look complete. "
            "Pass its checksum by expected_sha256 or checksum_file, or use another server."
        )
    return None


def _require_mark(file: SourceFile, answer: requests.Response) -> bool:
    """Whether the answer has the mark of the file. Raises SourceError if it has another one."""
    kind, _, value = file.mark.partition(" ")
    now = answer.headers.get(MARKS.get(kind, ""))
    if now is not None and now.removeprefix("W/") != value.removeprefix("W/"):
        raise changed(file, file.mark, f"{kind} {now}")
    return now is not None


def _refused(url: str, status: int) -> MarinError:
    if status in (401, 404, 410):
        return MissingFileError(
            f"{url!r} does not exist, or its server refuses to answer without the user and password of ~/.netrc "
            f"({status}). Expected a file. Correct the address."
        )
    return SourceError(f"The server answered {status} for {url!r}, expected the file. Correct the address.")
