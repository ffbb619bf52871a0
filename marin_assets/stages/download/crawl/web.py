"""Files of a crawl on a server: their sizes, and their bytes by ranges.

A failure that passes is tried again, at the byte where the answer ended. All processes of a machine together have at
most `max_connections` to a server: Common Crawl answers 403 above about 10. Content is requested as it is stored: a
server that encodes it again, or has another size or ETag than the listing, is an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from marin_assets.stages.download.crawl.crawl_file import UNKNOWN_BYTES, CrawlFile
from marin_assets.stages.download.warc.record import AbsentError, CrawlError
from marin_assets.stages.download.web import answers
from marin_assets.stages.download.web.answers import body_of, checked_start
from marin_assets.stages.download.web.client import Client
from marin_assets.stages.download.web.faults import Fault, persist
from marin_assets.stages.download.web.tally import Tally

if TYPE_CHECKING:
    import requests

T = TypeVar("T")

MAX_SIZED_FILES = 1000
"""Files of a list whose sizes are requested before they are read. The 90,000 of a crawl take a server that permits
eight connections half an hour; each is then a shard of its own, and its size is requested when it is read."""

FIRST_BYTES = 128 * 2**10
"""Bytes of the first request after a jump. Each that follows has twice as many: a reader that stops or jumps has left
little unread, and one that reads on sends few requests."""
SEGMENT_BYTES = 32 * 2**20
"""Most bytes of one request."""
IGNORED_RANGES = 1
"""Answers with the whole file in place of a range, until one is read up to the range."""


class WebClient:
    """Requests to servers of a crawl. `located` is safe for its own threads; a file is read by one."""

    def __init__(self, max_connections: int) -> None:
        self._most, self._stop = max_connections, threading.Event()
        self.tally = Tally()
        self._client = Client(
            tally=self.tally,
            stop=self._stop,
            max_connections=max_connections,
            refused=_refused,
            forbidden="limited",
        )
        self._files: list[WebFile] = []

    def __enter__(self) -> WebClient:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for file in self._files:
            file.close()

    def opened(self, file: CrawlFile) -> WebFile:
        """The file, to be read by offset. Nothing is requested yet."""
        opened = WebFile(self, file)
        self._files.append(opened)
        return opened

    def content(self, url: str, most_bytes: int) -> bytes:
        """The content of a file. Raises CrawlError and DownloadError."""
        file = self._located(url, url)
        if file.size_bytes > most_bytes:
            raise CrawlError(f"{url!r} has {file.size_bytes} bytes, expected at most {most_bytes}.")
        opened, parts, offset = self.opened(file), [], 0
        while offset < file.size_bytes:
            parts.append(opened.read_at(offset, file.size_bytes - offset))
            offset += len(parts[-1])
        return b"".join(parts)

    def sized(self, file: CrawlFile) -> CrawlFile:
        """The file with its size and ETag, by a request if they are unknown. Raises CrawlError and DownloadError."""
        return self._located(file.name, file.path) if file.size_bytes == UNKNOWN_BYTES else file

    def located(self, names: Sequence[str], base: str) -> list[CrawlFile]:
        """The files below a base, each with its size and ETag, of a long list without. Raises CrawlError and
        DownloadError."""
        base = base.rstrip("/")
        if len(names) > MAX_SIZED_FILES:
            return [
                CrawlFile(name=name, path=f"{base}/{quote(name)}", size_bytes=UNKNOWN_BYTES, stored=None)
                for name in names
            ]
        with ThreadPoolExecutor(self._most) as pool:
            files = pool.map(lambda name: self._located(name, f"{base}/{quote(name)}"), names)
            try:
                return list(files)
            except BaseException:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def at(self, url: str) -> CrawlFile:
        """The file of an address, with its size and ETag. Raises CrawlError and DownloadError."""
        return self._located(unquote(urlsplit(url).path.rpartition("/")[2]), url)

    def _located(self, name: str, url: str) -> CrawlFile:
        def locate() -> CrawlFile:
            with self.answer("HEAD", url, {}) as answer:
                size = answer.headers.get("Content-Length", "")
                if not size.isdecimal() or answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise Fault("wrong_answer", f"the answer for {url!r} has no size of the stored file")
                return CrawlFile(
                    name=name, path=url, size_bytes=int(size), stored=None, etag=answer.headers.get("ETag", "")
                )

        return self.persist(locate, url)

    def range(self, url: str, start: int, end: int) -> bytes:
        """The bytes of a file from `start` to `end`. Raises CrawlError and DownloadError."""
        data = bytearray()

        def fetch() -> bytes:
            at = start + len(data)
            with self.answer("GET", url, {"Range": f"bytes={at}-{end - 1}"}) as answer:
                match = answers.RANGE.fullmatch(answer.headers.get("Content-Range", ""))
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise Fault("wrong_answer", "the content is encoded")
                if answer.status_code == 200:
                    raise Fault("range_ignored", wait_s=0.0)
                if match is None or int(match[1]) != at:
                    raise Fault("wrong_range", f"expected one from {at}")
                for block in body_of(answer):
                    data.extend(block)
                    if len(data) >= end - start:
                        break
            if len(data) < end - start:
                raise Fault("cut", f"the answer ended at byte {start + len(data)}, expected {end}")
            return bytes(data[: end - start])

        return self.persist(fetch, url, lambda: len(data))

    def persist(self, action: Callable[[], T], url: str, progress: Callable[[], int] = lambda: 0) -> T:
        return persist(action, subject=f"The file {url!r}", tally=self.tally, stop=self._stop, progress=progress)

    def answer(self, method: str, url: str, headers: dict[str, str]) -> AbstractContextManager[requests.Response]:
        """An answer, within the limit of connections. Raises Fault, and CrawlError for one that stays."""
        return self._client.answer(method, url, headers)


def _refused(url: str, status: int) -> CrawlError:
    error = AbsentError if status in (404, 410) else CrawlError
    return error(f"The server answered {status} for {url!r}, expected the file. Correct the path or base_url.")


class WebFile:
    """One file, read forward by requests that grow. It holds the block that arrived last."""

    def __init__(self, client: WebClient, file: CrawlFile) -> None:
        self.size_bytes = file.size_bytes
        self._client, self._file = client, file
        self._start, self._block = 0, b""
        self._blocks: Iterator[bytes] | None = None
        self._next = self._end = -1
        """Offset of the next block of the answer that is open, and the end of its range."""
        self._segment = FIRST_BYTES
        self._ignored = 0

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`; none at the end of the file. Raises CrawlError and DownloadError."""
        if offset >= self.size_bytes:
            return b""
        if not 0 <= offset - self._start < len(self._block):
            self._block = self._client.persist(lambda: self._fetch(offset), self._file.path, lambda: self._next)
            self._start = offset
        begin = offset - self._start
        return self._block[begin : begin + size]

    def close(self) -> None:
        """End the answer that is open."""
        blocks: Any = self._blocks
        self._blocks = None
        if blocks is not None:
            blocks.close()

    def _fetch(self, offset: int) -> bytes:
        try:
            if self._blocks is None or self._next != offset:
                self.close()
                self._segment = min(2 * self._segment if self._next == offset else FIRST_BYTES, SEGMENT_BYTES)
                self._end = min(offset + self._segment, self.size_bytes)
                self._blocks, self._next = self._answered(offset, self._end), offset
            block = next(self._blocks, b"")
            if not block:
                raise Fault("cut", f"the answer ended at byte {offset}")
            self._next = offset + len(block)
            if self._next == self._end:
                self.close()
            return block
        except Fault:
            self.close()
            raise

    def _answered(self, start: int, end: int) -> Iterator[bytes]:
        with self._client.answer("GET", self._file.path, {"Range": f"bytes={start}-{end - 1}"}) as answer:
            etag = answer.headers.get("ETag", self._file.etag)
            if etag != self._file.etag:
                raise Fault("changed", f"the server has the ETag {etag!r:.80}, expected {self._file.etag!r:.80}")
            is_whole = answer.status_code == 200 and self._ignored >= IGNORED_RANGES
            self._ignored += answer.status_code == 200
            skip, rest = checked_start(answer, self.size_bytes, start, whole=start == 0 or is_whole), end - start
            for block in body_of(answer):
                taken = block[skip : skip + rest]
                skip, rest = max(0, skip - len(block)), rest - len(taken)
                if taken:
                    yield taken
                if not rest:
                    return
