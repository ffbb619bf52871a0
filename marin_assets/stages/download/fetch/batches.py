"""The complete part of a crawl, in batches: a crawl that was killed continues behind the last one.

    00000012.warc.gz      WARC records
    00000012.jsonl.zst    rows of kind "page" with the outcome of an address and the place of its records, "robots",
                          "host" and "clock"

The rows are written after the records, each file whole or not at all, so a batch without rows does not exist. A kill
loses the pages since the last batch, which are fetched again. Two writers keep the batch of the first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from marin_assets.documents import BadRow, DocumentError, read_rows, write_rows
from marin_resources.storage.files import names_in, remove, write_bytes
from marin_resources.storage.paths import join

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROWS, RECORDS = ".jsonl.zst", ".warc.gz"
COMMIT_BYTES = 64 * 2**20
"""Bytes of records that are held."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The work of earlier attempts."""

    batches: int
    done: NDArray[np.uint64]
    """Hashes of the addresses with an outcome, ascending."""
    fetched: int
    fetched_bytes: int
    elapsed_s: float
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Host -> its last row of kind "host"."""


def restored(folder: str) -> Progress:
    """Return what is complete, and remove records without rows."""
    import numpy as np

    names = set(names_in(folder))
    numbers = sorted(int(name.removesuffix(ROWS)) for name in names if name.endswith(ROWS))
    for name in names:
        if name.endswith(RECORDS) and f"{name.removesuffix(RECORDS)}{ROWS}" not in names:
            remove(join(folder, name))
    done, hosts = list[int](), dict[str, dict[str, Any]]()
    fetched = fetched_bytes = 0
    elapsed_s = 0.0
    for number in numbers:
        for row in rows_in(folder, number):
            if row["kind"] == "page":
                done.append(int(row["key"][-16:], 16))
                fetched += row["outcome"] == "fetched"
                fetched_bytes += row.get("bytes", 0)
            elif row["kind"] == "host":
                hosts[row["host"]] = row
            elif row["kind"] == "clock":
                elapsed_s += row["elapsed_s"]
    return Progress(
        batches=numbers[-1] + 1 if numbers else 0,
        done=np.unique(np.array(done, np.uint64)),
        fetched=fetched,
        fetched_bytes=fetched_bytes,
        elapsed_s=elapsed_s,
        hosts=hosts,
    )


def rows_in(folder: str, number: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch. Raises DocumentError for a damaged one."""
    path = join(folder, f"{number:08d}{ROWS}")
    for line, row in read_rows(path):
        if isinstance(row, BadRow) or "kind" not in row:
            raise DocumentError(
                f"{path!r} line {line} is no row of a crawl. Remove the output, and run the step again."
            )
        yield row


class Batches:
    """Collects outcomes, and writes them every `commit_s` seconds or COMMIT_BYTES. Safe for many threads."""

    def __init__(self, folder: str, number: int, commit_s: float) -> None:
        self._folder, self._number, self._commit_s = folder, number, commit_s
        self._rows: list[dict[str, Any]] = []
        self._records: list[bytes] = []
        self._offset = 0
        self._committed_s = self._began_s = time.monotonic()
        self._lock, self._writing = threading.Lock(), threading.Lock()

    def add(self, row: Mapping[str, Any], records: bytes = b"") -> None:
        """Add a row, with its records if it has some."""
        with self._lock:
            place = {"offset": self._offset, "length": len(records)} if records else {}
            self._rows.append({**row, **place})
            if records:
                self._records.append(records)
                self._offset += len(records)
        self.commit_if_due()

    def commit_if_due(self) -> None:
        with self._lock:
            is_due = time.monotonic() - self._committed_s >= self._commit_s or self._offset >= COMMIT_BYTES
        if is_due:
            self.commit()

    def commit(self) -> None:
        """Write what has been added, if anything has."""
        with self._writing:
            with self._lock:
                now_s = time.monotonic()
                rows, records = self._rows, self._records
                self._rows, self._records, self._offset = [], [], 0
                self._committed_s = now_s
                if not rows:
                    return
                rows.append({"kind": "clock", "elapsed_s": round(now_s - self._began_s, 3)})
                self._began_s = now_s
            path = join(self._folder, f"{self._number:08d}")
            if records:
                write_bytes(f"{path}{RECORDS}", b"".join(records), replace=False)
            write_rows(f"{path}{ROWS}", rows, replace=False)
            self._number += 1
