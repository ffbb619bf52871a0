"""A file of a crawl, opened: its bytes by offset, read forward in blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.warc.members import Readable
from marin_assets.stages.download.warc.record import CrawlError
from marin_resources.storage.files import open_to_read

BLOCK_BYTES = 2**20


@contextmanager
def opened(file: CrawlFile, counts: Counter[str], *, max_connections: int) -> Iterator[Readable]:
    """Open a file in its store or on its server. `counts` gets requests, retries and retries_<reason> of a server."""
    if file.stored is None:
        from marin_assets.stages.download.crawl.web import WebClient

        with WebClient(max_connections) as client:
            try:
                yield client.opened(client.sized(file))
            finally:
                counts.update(client.tally.counts())
        return
    with open_to_read(file.path) as stored:
        yield _Stored(file, stored)


class _Stored:
    """A file of a store. It holds the block that was read last."""

    def __init__(self, file: CrawlFile, stored: IO[bytes]) -> None:
        self.size_bytes = file.size_bytes
        self._name, self._stored = file.name, stored
        self._start, self._block, self._position = 0, b"", -1

    def read_at(self, offset: int, size: int) -> bytes:
        if not 0 <= offset - self._start < len(self._block):
            self._fill(offset)
        begin = offset - self._start
        return self._block[begin : begin + size]

    def _fill(self, offset: int) -> None:
        if self._position != offset:
            self._stored.seek(offset)
        rest = max(0, self.size_bytes - offset)
        block = self._stored.read(min(BLOCK_BYTES, rest))
        if not block and rest:
            raise CrawlError(
                f"The file {self._name!r} ends at byte {offset}, expected {self.size_bytes} bytes by its listing. Run "
                "it again when nothing writes to it."
            )
        self._start, self._block, self._position = offset, block, offset + len(block)
