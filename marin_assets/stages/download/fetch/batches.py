"""The complete part of a crawl, in batches: a crawl that was killed continues behind the last one.

    00000012.warc.gz      WARC records
    00000012.jsonl.zst    rows of kind "page" with the outcome of an address and the place of its records, "try" with
                          the failures of one that is tried again, "robots", "host" and "clock"
    00000012.journal      on a disk: rows and records since the last batch, which become a batch after a kill

The rows are written after the records, each file whole or not at all, so a batch without rows does not exist. On a disk
a kill loses no answer that had arrived; in a bucket it loses those since the last batch, which are fetched again. Two
writers keep the batch of the first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from marin_assets.documents import BadRow, DocumentError, read_rows, write_rows
from marin_assets.stages.download.fetch.journal import SUFFIX, Journal, frames_in, remove_journal
from marin_resources.storage.files import exists, names_in, remove, write_bytes
from marin_resources.storage.paths import is_local, join

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROWS, RECORDS = ".jsonl.zst", ".warc.gz"
COMMIT_BYTES = 64 * 2**20
"""Bytes of records that are held."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The work of earlier attempts."""

    batches: tuple[int, ...]
    """Their numbers, ascending. Those that could not be written are missing."""
    done: NDArray[np.uint64]
    """Hashes of the addresses with an outcome, ascending."""
    fetched: int
    fetched_bytes: int
    elapsed_s: float
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Host -> its last row of kind "host"."""
    tries: Mapping[str, int] = field(default_factory=dict)
    """Key of an address that has no outcome yet, or origin without rules -> its failures."""


def restored(folder: str) -> Progress:
    """Return what is complete, with batches of the journals; remove records without rows."""
    import numpy as np

    names = set(names_in(folder))
    for name in names:
        if name.endswith(RECORDS) and f"{name.removesuffix(RECORDS)}{ROWS}" not in names:
            remove(join(folder, name))
    journals = sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    numbers = sorted(int(name.removesuffix(ROWS)) for name in names if name.endswith(ROWS))
    numbers = sorted({*numbers, *(int(name) for name in journals if _is_recovered(join(folder, name)))})
    done, hosts, tries = list[int](), dict[str, dict[str, Any]](), dict[str, int]()
    fetched = fetched_bytes = 0
    elapsed_s = 0.0
    for number in numbers:
        for row in rows_in(folder, number):
            if row["kind"] == "page":
                done.append(int(row["key"][-16:], 16))
                fetched += row["outcome"] == "fetched"
                fetched_bytes += row.get("bytes", 0)
                tries.pop(row["key"], None)
            elif row["kind"] == "try":
                tries[row["key"]] = row["tries"]
            elif row["kind"] == "robots":
                tries.pop(row["origin"], None)
            elif row["kind"] == "host":
                hosts[row["host"]] = row
            elif row["kind"] == "clock":
                elapsed_s += row["elapsed_s"]
    return Progress(
        batches=tuple(numbers),
        done=np.unique(np.array(done, np.uint64)),
        fetched=fetched,
        fetched_bytes=fetched_bytes,
        elapsed_s=elapsed_s,
        hosts=hosts,
        tries=tries,
    )


def _is_recovered(path: str) -> bool:
    """Write the batch of a journal, if it is not written. Return whether it exists then."""
    batch: list[tuple[dict[str, Any], bytes]] = []
    if not exists(f"{path}{ROWS}") and (batch := list(frames_in(f"{path}{SUFFIX}"))):
        _write(path, batch, elapsed_s=max(row.pop("elapsed_s") for row, _ in batch))
    remove_journal(f"{path}{SUFFIX}")
    return bool(batch)


def _write(path: str, batch: Sequence[tuple[dict[str, Any], bytes]], *, elapsed_s: float) -> None:
    rows: list[dict[str, Any]] = []
    offset = 0
    for row, records in batch:
        rows.append({**row, "offset": offset, "length": len(records)} if records else row)
        offset += len(records)
    if offset:
        write_bytes(f"{path}{RECORDS}", b"".join(records for _, records in batch), replace=False)
    rows.append({"kind": "clock", "elapsed_s": round(elapsed_s, 3)})
    write_rows(f"{path}{ROWS}", rows, replace=False)


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
        self._batch: list[tuple[dict[str, Any], bytes]] = []
        self._journal: Journal | None = None
        self._bytes = 0
        self._committed_s = self._began_s = time.monotonic()
        self._lock, self._writing = threading.Lock(), threading.Lock()

    def add(self, row: Mapping[str, Any], records: bytes = b"") -> None:
        """Add a row, with its records if it has some. On a disk they survive a kill from now on."""
        with self._lock:
            if self._journal is None and is_local(self._folder):
                self._journal = Journal(f"{self._path()}{SUFFIX}")
            if self._journal is not None:
                self._journal.add({**row, "elapsed_s": round(time.monotonic() - self._began_s, 3)}, records)
            self._batch.append((dict(row), records))
            self._bytes += len(records)
        self.commit_if_due()

    def _path(self) -> str:
        return join(self._folder, f"{self._number:08d}")

    def commit_if_due(self) -> None:
        with self._lock:
            is_due = time.monotonic() - self._committed_s >= self._commit_s or self._bytes >= COMMIT_BYTES
        if is_due:
            self.commit()

    def commit(self) -> None:
        """Write what has been added, if anything has."""
        with self._writing:
            with self._lock:
                now_s = time.monotonic()
                batch, journal, path = self._batch, self._journal, self._path()
                self._batch, self._journal, self._bytes = [], None, 0
                self._committed_s = now_s
                if not batch:
                    return
                self._number += 1
                elapsed_s, self._began_s = now_s - self._began_s, now_s
            _write(path, batch, elapsed_s=elapsed_s)
            if journal is not None:
                journal.remove()
