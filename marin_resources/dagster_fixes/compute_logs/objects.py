"""Compute logs in a bucket or a folder: one object for each stream of each log, below `<prefix>/.marin/logs/`.

    <run id>/compute_logs/<name>.out, .err    the output until now, then all of it
    <run id>/compute_logs/<name>.complete     no more will follow

Every request has a time limit, with which it is cancelled: the clients' own are 5 minutes for one try. `.marin` is
hidden from all that lists data, so no log is taken for a step's output.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import is_local, join
from marin_resources.types.errors import MarinError

FOLDER = ".marin/logs"
"""Below the prefix."""
COMPLETE = json.dumps({"format_version": 1}).encode()
REQUEST_S = 10.0
BYTES_PER_S = 1024**2
"""Each such number of bytes of a log adds a second to the limit of its upload or download."""
HELD_IN_MEMORY_BYTES = 8 * 1024**2
"""Limit of a log that is uploaded at once; a larger one is sent in pieces of this size."""
AWAY_S = 15.0
"""Time for which a store that has not answered gets no request to show a log."""

T = TypeVar("T")


class LogStoreError(MarinError):
    """The store of the logs did not fulfil a request: one sentence."""


class LogObjects:
    """The logs of one prefix. The methods block, and raise LogStoreError within their time limit."""

    def __init__(self, prefix: str) -> None:
        self.url = join(prefix, FOLDER)
        self._local = is_local(prefix)
        self._lock = threading.Lock()
        self._opened: tuple[Any, str] | None = None
        self._away: tuple[float, LogStoreError] | None = None
        """The time until which no request is sent, and the error that is the reason."""

    def path(self, name: str) -> str:
        return join(self.url, name)

    def put(self, name: str, file: str, size_bytes: int) -> None:
        """Store the first `size_bytes` bytes of a local file, which may grow meanwhile, in place of a stored log."""
        limit_s = REQUEST_S + size_bytes / BYTES_PER_S
        if self._local:
            self._try("written", name, lambda _, place: _copy(file, place, size_bytes))
        elif size_bytes <= HELD_IN_MEMORY_BYTES:
            with open(file, "rb") as opened:
                data = opened.read(size_bytes)
            self._ask("written", name, "_pipe_file", data, limit_s=limit_s)
        else:  # a client reads to the end of the file, which is to stay where it is
            with tempfile.NamedTemporaryFile(prefix="marin-log-") as still:
                _copy_bytes(file, still.name, size_bytes)
                self._put_in_pieces(name, still.name, limit_s)

    def complete(self, name: str) -> None:
        """State that no more will follow."""
        if self._local:
            self._try("written", name, lambda _, place: _write(place))
        else:
            self._ask("written", name, "_pipe_file", COMPLETE)

    def size(self, name: str) -> int | None:
        """Size in bytes; None if nothing is stored."""
        self._require_answers()
        try:
            return int(self._ask("read", name, "_info")["size"])
        except FileNotFoundError:
            return None

    def read(self, name: str, start: int, end: int) -> bytes:
        self._require_answers()
        data: bytes = self._ask("read", name, "_cat_file", start=start, end=end)
        return data

    def get(self, name: str, file: str) -> None:
        """Copy a stored log to a local file, whole or not at all. Raises FileNotFoundError too."""
        limit_s = REQUEST_S + (self.size(name) or 0) / BYTES_PER_S
        os.makedirs(os.path.dirname(file), exist_ok=True)
        partial = f"{file}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            self._ask("read", name, "_get_file", partial, limit_s=limit_s)
            os.replace(partial, file)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial)

    def names_below(self, folder: str) -> list[str]:
        """Names of all that is stored below a folder of logs, which may not exist."""
        try:
            places = self._ask("listed", folder, "_find")
        except FileNotFoundError:
            return []
        start = len(self._open()[1].rstrip("/")) + 1
        return [place[start:] for place in places if not place.endswith("/")]

    def remove(self, name: str) -> None:
        """Remove the object of a name, if it exists."""
        with suppress(FileNotFoundError):
            self._ask("removed", name, "_rm_file")

    def _put_in_pieces(self, name: str, file: str, limit_s: float) -> None:
        try:
            self._ask("written", name, "_put_file", file, limit_s=limit_s, first=True, chunksize=HELD_IN_MEMORY_BYTES)
        except LogStoreError as error:
            cause = error.__cause__
            if isinstance(cause, AttributeError) and cause.__context__ is not None:
                raise self._error("written", name, cause.__context__) from cause  # gcsfs loses it in its own clean-up
            raise

    def _require_answers(self) -> None:
        away = self._away
        if away is not None and time.monotonic() < away[0]:
            raise away[1]

    def _ask(
        self,
        action: str,
        name: str,
        method: str,
        *arguments: Any,
        limit_s: float | None = None,
        first: bool = False,
        **options: Any,
    ) -> Any:
        """Call a method of the filesystem: its coroutine in a bucket, the method itself on a disk.

        `action` is a participle for errors: "read". `first`: the arguments come before the place.
        """

        def call(fs: Any, place: str) -> Any:
            given = (*arguments, place) if first else (place, *arguments)
            if not fs.async_impl:
                return getattr(fs, method.lstrip("_"))(*given, **options)
            from fsspec.asyn import sync  # late, for its weight: asyncio and ssl

            return sync(fs.loop, getattr(fs, method), *given, timeout=limit_s or REQUEST_S, **options)

        return self._try(action, name, call)

    def _try(self, action: str, name: str, call: Callable[[Any, str], T]) -> T:
        try:
            fs, root = self._open()
            result = call(fs, f"{root.rstrip('/')}/{name}")
        except FileNotFoundError as error:
            if action != "written":
                self._away = None
                raise
            raise self._error(action, name, error) from error
        except Exception as error:  # of the clients, of their credentials, of aiohttp: without a base in common
            raise self._error(action, name, error) from error
        self._away = None
        return result

    def _error(self, action: str, name: str, error: BaseException) -> LogStoreError:
        reason = "it did not answer in time" if type(error).__name__ == "FSTimeoutError" else error
        why = " ".join(f"{type(error).__name__}: {reason}".split())[:300]
        failed = LogStoreError(f"{self.path(name)!r} cannot be {action} ({why}).")
        self._away = (time.monotonic() + AWAY_S, failed)
        return failed

    def _open(self) -> tuple[Any, str]:
        """One client for all threads: fsspec creates one for each, with credentials and connections of its own."""
        with self._lock:
            if self._opened is None:
                self._opened = filesystem_of(self.url)
            return self._opened


def _copy(file: str, place: str, size_bytes: int) -> None:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    partial = f"{place}.{uuid.uuid4().hex[:8]}.tmp"
    try:
        _copy_bytes(file, partial, size_bytes)
        os.replace(partial, place)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def _copy_bytes(file: str, target: str, size_bytes: int) -> None:
    with open(file, "rb") as source, open(target, "wb") as aim:
        while size_bytes and (data := source.read(min(size_bytes, HELD_IN_MEMORY_BYTES))):
            aim.write(data)
            size_bytes -= len(data)


def _write(place: str) -> None:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(COMPLETE)
