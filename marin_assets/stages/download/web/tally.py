"""Counts of a download, added up by many threads, and its progress in the log: rate and time left."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

EVERY_S = 5.0
log = logging.getLogger(__name__)


class Tally:
    """The counts of one shard, or of a listing."""

    def __init__(self, name: str = "", *, files: int = 0, size_bytes: int = 0) -> None:
        self._name, self._all_files, self._all_bytes = name, files, size_bytes
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._had_bytes = self._done_bytes = 0
        self._started_s = self._logged_at_s = time.monotonic()

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)

    def request(self) -> None:
        self._add("requests", 1)

    def retry(self, reason: str) -> None:
        self._add("retries", 1)
        self._add(f"retries_{reason}", 1)

    def file(self, size_bytes: int) -> None:
        """Add a complete, verified file."""
        self._add("files", 1)
        self._add("bytes", size_bytes)

    def had(self, size_bytes: int) -> None:
        """Add bytes that an earlier attempt has fetched. They do not count for the rate."""
        with self._lock:
            self._had_bytes += size_bytes
            self._done_bytes += size_bytes

    def fetched(self, size_bytes: int) -> None:
        """Add bytes that have arrived."""
        with self._lock:
            self._counts["bytes_fetched"] += size_bytes
            self._done_bytes += size_bytes
            now_s = time.monotonic()
            if now_s - self._logged_at_s < EVERY_S:
                return
            self._logged_at_s = now_s
            line = self._line(now_s - self._started_s)
        log.info("%s", line)

    def close(self) -> None:
        """Log the last line."""
        with self._lock:
            line = self._line(max(time.monotonic() - self._started_s, 1e-9))
        log.info("%s", line)

    def again(self, size_bytes: int) -> None:
        """Take back bytes that are fetched again."""
        with self._lock:
            self._done_bytes -= size_bytes

    def _line(self, elapsed_s: float) -> str:
        rate = (self._done_bytes - self._had_bytes) / elapsed_s
        left_s = max(0, self._all_bytes - self._done_bytes) / max(rate, 1)
        files = f"{self._counts['files']} of {self._all_files} files"
        amount = f"{self._done_bytes / 1e6:,.1f} of {self._all_bytes / 1e6:,.1f} MB"
        return f"{self._name}: {files}, {amount}, {rate / 1e6:,.1f} MB/s, {left_s:,.0f} s left"

    def _add(self, name: str, count: int) -> None:
        with self._lock:
            self._counts[name] += count
