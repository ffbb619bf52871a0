"""Lines of bytes in order, sorted in bounded memory: runs in temporary files, which are merged."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterator
from typing import IO, Any

RUN_BYTES = 64 * 2**20
"""Bytes of lines that are held; Python takes about twice as many."""


class LineSorter:
    """Collects lines without line ends, and yields them in the order of their bytes, equal ones too."""

    def __init__(self, run_bytes: int = RUN_BYTES) -> None:
        self._run_bytes, self._held, self._held_bytes = run_bytes, list[bytes](), 0
        self._runs: list[IO[bytes]] = []

    def __enter__(self) -> LineSorter:
        return self

    def __exit__(self, *error: Any) -> None:
        for run in self._runs:
            run.close()

    def add(self, line: bytes) -> None:
        """Raises ValueError for a line with a line end in it."""
        if b"\n" in line:
            raise ValueError(f"The line {line[:80]!r} has a line end in it.")
        self._held.append(line)
        self._held_bytes += len(line) + 48
        if self._held_bytes >= self._run_bytes:
            self._spill()

    def lines(self) -> Iterator[bytes]:
        """Yield all lines in order. Nothing may be added afterwards."""
        self._held.sort()
        for run in self._runs:
            run.seek(0)
        runs: list[Iterator[bytes]] = [(line[:-1] for line in run) for run in self._runs]
        return heapq.merge(*runs, self._held)

    def _spill(self) -> None:
        self._held.sort()
        run = tempfile.TemporaryFile()  # noqa: SIM115
        self._runs.append(run)
        run.writelines(line + b"\n" for line in self._held)
        self._held, self._held_bytes = [], 0
