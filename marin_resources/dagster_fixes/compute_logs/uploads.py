"""The uploads of a process: one thread, while a log is to be stored. Nothing waits for it without a limit.

Each round it stores the ended logs of its process, the new parts of the others, and then the logs of dead processes.
The local files of a log are removed when the store has all of it. While the store is away the logs stay here, and every
round tries again; one warning reports the beginning of this time, and one its end.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from marin_resources.dagster_fixes.compute_logs.objects import BYTES_PER_S, LogObjects
from marin_resources.dagster_fixes.compute_logs.waiting import Claim, Waiting

STREAMS = ("out", "err")
"""Extensions of the files of a log."""

log = logging.getLogger(__name__)


@dataclass
class Captured:
    """A log of this process that is not stored yet."""

    claim: Claim
    ended: bool = False
    stored: threading.Event = field(default_factory=threading.Event)
    due_s: float = 0.0
    """Time at which the next part of it is stored."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes that the store has."""


class Uploads:
    def __init__(self, objects: LogObjects, local: Any, waiting: Waiting, interval_s: float) -> None:
        self._objects, self._local, self._waiting, self._interval_s = objects, local, waiting, interval_s
        self._captured: dict[tuple[str, ...], Captured] = {}
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._away = False

    def begin(self, log_key: Sequence[str]) -> Captured | None:
        """Note a log before its first byte, and store its output from now on. None if another process does."""
        earlier = self._captured.get(tuple(log_key))
        if earlier is not None and not earlier.stored.is_set():
            earlier.ended = False  # it is written again, before it was stored
            return earlier
        claim = self._waiting.claim(log_key)
        if claim is None:
            return None
        captured = Captured(claim, due_s=time.monotonic() + self._interval_s)
        with self._lock:
            self._captured[claim.log_key] = captured
            if self._thread is None:
                self._thread = threading.Thread(target=self._store_all, name="uploads of logs", daemon=True)
                self._thread.start()
        return captured

    def end(self, captured: Captured, wait_s: float) -> None:
        """All of the log is on this machine. Wait a little for the store to have it, and not if that is away."""
        captured.ended = True
        self._wake.set()
        if wait_s and not captured.stored.wait(0 if self._away else wait_s):
            self._tell_away(f"The log of this run was not stored within {wait_s:g} s.")

    def store_what_is_left(self, limit_s: float = math.inf) -> int:
        """Store the logs of ended processes, now; return their number. After the limit it begins no further one.

        Raises LogStoreError and OSError.
        """
        count, deadline_s = 0, time.monotonic() + limit_s
        for claim in self._waiting.of_the_dead():
            try:
                self._store_whole(claim, {})
            except BaseException:  # any error: the next process stores the log
                claim.release()
                raise
            count += 1
            if time.monotonic() > deadline_s:
                break
        return count

    def _store_all(self) -> None:
        pause_s = 0.0  # first, the logs of dead processes
        while True:
            self._wake.wait(pause_s)
            self._wake.clear()
            pause_s = self._interval_s
            try:
                self._store_own()
                self.store_what_is_left()
            except Exception as error:  # a full disk, a damaged file: the thread must survive, and try again
                self._tell_away(str(error))
            else:
                self._tell_back()
            with self._lock:
                if not self._captured:
                    self._thread = None
                    return

    def _store_own(self) -> None:
        """Ended logs first: somebody waits for them."""
        for captured in sorted(self._captured.values(), key=lambda capture: not capture.ended):
            if captured.ended:
                with self._lock:
                    self._captured.pop(captured.claim.log_key)
                try:
                    self._store_whole(captured.claim, captured.sizes)
                except BaseException:  # any error: the next round tries again
                    with self._lock:
                        self._captured[captured.claim.log_key] = captured
                    raise
                captured.stored.set()
            elif time.monotonic() >= captured.due_s:
                self._store_parts(captured.claim.log_key, captured.sizes)
                printed = sum(captured.sizes.values())  # all of it is sent each time
                captured.due_s = time.monotonic() + max(self._interval_s, printed / BYTES_PER_S)

    def _store_whole(self, claim: Claim, sizes: dict[str, int]) -> None:
        """Store the rest of a log, and remove it here."""
        log_key = claim.log_key
        self._store_parts(log_key, sizes)
        if any(os.path.exists(self._file(log_key, stream)) for stream in STREAMS):
            self._objects.complete(self.name_of(log_key, "complete"))
        with suppress(FileNotFoundError):
            self._local.delete_logs(log_key=log_key)
        claim.stored()

    def _store_parts(self, log_key: Sequence[str], sizes: dict[str, int]) -> None:
        """Store both streams, as far as they have grown; `sizes` has the bytes that the store has of them."""
        for stream in STREAMS:
            file = self._file(log_key, stream)
            size_bytes = os.path.getsize(file) if os.path.exists(file) else 0
            if size_bytes > sizes.get(stream, 0):
                self._objects.put(self.name_of(log_key, stream), file, size_bytes)
                sizes[stream] = size_bytes

    def name_of(self, log_key: Sequence[str], extension: str) -> str:
        """The name of an object, from the local path: Dagster shortens long names, and refuses those with '..'."""
        path = self._local.get_captured_local_path(log_key, extension)
        return os.path.relpath(path, self._waiting.local_dir)

    def _file(self, log_key: Sequence[str], stream: str) -> str:
        return str(self._local.get_captured_local_path(log_key, stream))

    def _tell_away(self, why: str) -> None:
        if not self._away:
            self._away = True
            log.warning(
                "Logs are kept in %s until they are in %s, and nothing waits for that. %s",
                self._waiting.local_dir,
                self._objects.url,
                why,
            )

    def _tell_back(self) -> None:
        if self._away:
            self._away = False
            log.warning("The logs are in %s again.", self._objects.url)
