"""The ids and digests of all rows of an output, read in steps: each request continues where the last one ended.

In:  files of rows.   Out: 44 bytes a row, in 256 buckets by the first byte of the id's digest.   Written: nothing.

A row is noted where it is read, so shards may be of any number and order. Of more than MOST_RECORDS rows the upper half
of the buckets is dropped, and again: then the ids of the others are compared, which the hash has chosen.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from marin_assets.browse.errors import LimitError
from marin_assets.browse.rows.difference.digests import DIGEST_BYTES, ID_BYTES, digests_of
from marin_assets.browse.rows.lines import row_lines
from marin_assets.browse.rows.measure import unpacked
from marin_assets.browse.rows.reader import PARQUET, Row
from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import format_of
from marin_assets.documents.frames.index import open_indexed
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.parquet.read import count_parquet_rows, read_chosen_parquet
from marin_resources.storage.files import StoredFile

BUCKETS = 256
PLACE = struct.Struct(">II")
"""The index of the file, and the number of the row."""
CONTENT_BYTES = 3 * DIGEST_BYTES
RECORD_BYTES = ID_BYTES + CONTENT_BYTES + PLACE.size
MOST_RECORDS = 4_000_000
"""Rows whose records are kept, 176 MB."""
DEEP = "nested too deeply"


class Inventory:
    """The records of the rows of one output."""

    def __init__(self, files: Sequence[StoredFile]) -> None:
        self.files = files
        self.buckets = [bytearray() for _ in range(BUCKETS)]
        self.kept = BUCKETS
        """Buckets that are kept, the first ones."""
        self.rows = self.without_id = self.bad = 0
        """Rows that were read, with and without an id; lines that are no row."""
        self.damage: list[str] = []
        self.file = 0
        """The index of the file that is read next."""
        self._lock = threading.Lock()
        """Held by the request that reads on: two comparisons may have the same inventory."""
        self._row = self._records = 0

    @property
    def is_finished(self) -> bool:
        return self.file == len(self.files)

    @property
    def bytes(self) -> int:
        return sum(map(len, self.buckets))

    def advance(self, end_s: float) -> None:
        """Read on, until all rows are read or the monotonic clock shows `end_s`. Raises LimitError."""
        if not self._lock.acquire(timeout=max(end_s - time.monotonic(), 0)):
            return
        try:
            self._read(end_s)
        finally:
            self._lock.release()

    def _read(self, end_s: float) -> None:
        while not self.is_finished:
            file = self.files[self.file]
            try:
                for row in rows_from(file.path, self._row):
                    self._add(unpacked(file.path, row))
                    self._row += 1
                    if time.monotonic() > end_s:
                        return
            except (DocumentError, OSError) as error:
                self.damage.append(str(error))
            self.file, self._row = self.file + 1, 0

    def _add(self, row: Row) -> None:
        self.rows += 1
        digests: Any = None
        try:
            digests = digests_of(row) if isinstance(row, dict) else b""
        except RecursionError:
            digests = b""
        if not digests:
            self.without_id += digests is None
            self.bad += digests is not None
        elif digests[0] < self.kept:
            self.buckets[digests[0]] += digests + PLACE.pack(self.file, self._row)
            self._records += 1
            if self._records > MOST_RECORDS:
                self._halve()

    def _halve(self) -> None:
        if self.kept == 1:
            raise LimitError(
                f"An output has more than {MOST_RECORDS:,} rows with ids of one part of {BUCKETS}. Compare its files."
            )
        self.kept //= 2
        for bucket in self.buckets[self.kept :]:
            self._records -= len(bucket) // RECORD_BYTES
            bucket.clear()


def rows_from(path: str, start: int) -> Iterator[Row]:
    """The rows of a file from a row on, which is reached by an index where the file has one. Raises DocumentError."""
    if format_of(path) == PARQUET:
        yield from (row for _, row in read_chosen_parquet(path, range(start, count_parquet_rows(path))))
        return
    indexed, parser = open_indexed(path), LineParser()
    if indexed is not None:
        lines = indexed.lines(start, max(indexed.index.rows - start, 0))
    else:
        lines = (line for _, line in islice(row_lines(path), start, None))
    yield from map(parser.row, lines)
