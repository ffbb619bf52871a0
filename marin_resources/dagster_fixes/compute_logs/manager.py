"""Dagster's compute log manager over any prefix: the logs of runs and ticks outlive the machine, and no run waits.

    compute_logs: {module: marin_resources.dagster_fixes.compute_logs.manager, class: StoredComputeLogManager,
                   config: {prefix: {env: MARIN_PREFIX}}}

A log is printed into a local file, and its process uploads it to `<prefix>/.marin/logs/` each 15 s while it grows, and
whole when it ends. Another machine shows the uploaded part; this one shows the file. If the store is away, the file
stays, a warning reports it, the run continues, and it ends at most 5 s later. What an ended process has left here is
uploaded by the next process on this machine that has a log, or by the sensor `waiting_logs`. Of a killed process the
store has what was uploaded, and this machine the rest.

Dagster's own GCSComputeLogManager (dagster-gcp 0.29.27) is not it. Measured with a bucket that answers 503: if it is
away at the start, the run fails after 103 s, as the constructor looks for the bucket; if it is away at the end, the run
ends 97 s later, and its log stays on the machine for good. Its thread of uploads ends with the first error. It signs
URLs, which everybody who sees them may use. It is for GCS alone, and its import takes 2.5 s and 206 MB.

Related: dagster-io/dagster#3708 and dagster-io/dagster#3565, both closed. Without this, a run waits for its bucket.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from dagster import Field, Float, StringSource
from dagster._core.storage.cloud_storage_compute_log_manager import (
    CloudStorageComputeLogManager,
    PollingComputeLogSubscriptionManager,
)
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._serdes import ConfigurableClass

from marin_resources.configuration.settings import normalize_prefix
from marin_resources.dagster_fixes.compute_logs.objects import BYTES_PER_S, LogObjects, LogStoreError

INTERVAL_S, POLL_S = 15.0, 5.0
END_WAIT_S = 5.0
"""Time limit for the end of a run to wait for the upload of its log."""
DOWNLOADED_S = 3600.0
"""Time for which a downloaded copy stays on this machine."""
EXTENSIONS = {"stdout": "out", "stderr": "err"}
"""Stream of Dagster -> extension of its file."""
STREAMS = tuple(EXTENSIONS.values())
COMPLETE = "complete"
"""Extension of the mark that no more will follow: of Dagster's on this machine, and of ours in the store."""

log = logging.getLogger(__name__)


class StoredComputeLogManager(CloudStorageComputeLogManager, ConfigurableClass):  # type: ignore[type-arg]
    """`compute_logs` of a dagster.yaml.

    prefix               a folder, or a URL such as gs://bucket/path. Raises SettingError if it is neither.
    local_dir            folder of logs until they are stored, by default Dagster's: DAGSTER_HOME/storage
    upload_interval_s    between two uploads of a log that grows; larger than 15 MB, a second for each MiB of it
    """

    def __init__(
        self,
        prefix: str,
        local_dir: str | None = None,
        upload_interval_s: float = INTERVAL_S,
        inst_data: Any = None,
    ) -> None:
        self._inst_data = inst_data
        self._objects = LogObjects(normalize_prefix(prefix))
        self._local_dir = os.path.realpath(local_dir or os.path.join(os.environ["DAGSTER_HOME"], "storage"))
        self._local_manager = LocalComputeLogManager(self._local_dir)
        self._interval_s = upload_interval_s
        self._is_away = False
        self._subscriptions = _Subscriptions(self)
        self._downloaded: list[tuple[float, str]] = []
        super().__init__()

    @property
    def inst_data(self) -> Any:
        return self._inst_data

    @classmethod
    def config_type(cls) -> Any:
        return {
            "prefix": StringSource,
            "local_dir": Field(StringSource, is_required=False),
            "upload_interval_s": Field(Float, is_required=False, default_value=INTERVAL_S),
        }

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> StoredComputeLogManager:
        return cls(inst_data=inst_data, **config_value)

    @property
    def local_manager(self) -> LocalComputeLogManager:
        return self._local_manager

    @property
    def upload_interval(self) -> int | None:
        return None  # of Dagster's own thread, which ends with the first error

    @property
    def url(self) -> str:
        """The folder of the logs."""
        return self._objects.url

    def waiting(self) -> int:
        """The number of logs of this machine that have ended and are not stored."""
        return sum(1 for _ in self._left())

    def store_what_is_left(self, limit_s: float = math.inf) -> int:
        """Store the logs that have ended and are still here; return their number. After the limit it begins no other.

        Raises LogStoreError and OSError.
        """
        count, ends_s = 0, time.monotonic() + limit_s
        for mark in self._left():
            stem = os.path.relpath(mark, self._local_dir).removesuffix(COMPLETE)
            with suppress(FileNotFoundError):  # another process has stored it
                self._store_whole({extension: stem + extension for extension in (*STREAMS, COMPLETE)}, {})
                count += 1
            if time.monotonic() > ends_s:
                break
        return count

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Iterator[Any]:
        ended, stored = threading.Event(), threading.Event()
        self._start_thread(lambda: self._store_until(log_key, ended, stored))
        try:
            with self._local_manager.capture_logs(log_key) as context:
                yield context
        finally:
            self._mark_ended(log_key)
            ended.set()
            if not stored.wait(END_WAIT_S):
                self._report_away(f"The log of this run was not stored within {END_WAIT_S:g} s.")

    @contextmanager
    def open_log_stream(self, log_key: Sequence[str], io_type: Any) -> Iterator[IO[Any] | None]:
        """The log of a tick. The tick does not wait for it, and one without a line is not stored."""
        try:
            with self._local_manager.open_log_stream(log_key, io_type) as stream:
                yield stream
        finally:
            if any(self._local_bytes(log_key, extension) for extension in STREAMS):
                self._mark_ended(log_key)
                self._start_thread(lambda: self._try(lambda: self._store_whole(self._names(log_key), {})))
            else:
                self._local_manager.delete_logs(log_key=log_key)

    def is_capture_complete(self, log_key: Sequence[str]) -> bool:
        """Whether no more is printed to the log, as far as that is known now."""
        if self._local_manager.is_capture_complete(log_key):
            return True
        with self._answers_or_not():
            return self._objects.size(self._name_of(log_key, COMPLETE)) is not None
        return False

    def get_log_data_for_type(
        self, log_key: Sequence[str], io_type: Any, offset: int, max_bytes: int | None
    ) -> tuple[bytes | None, int]:
        """Read the local file if it exists, else the store. If the log cannot be read, stderr has the error."""
        if self.has_local_file(log_key, io_type):
            data, end = self._local_manager.get_log_data_for_type(log_key, io_type, offset, max_bytes)
            if data is not None:  # it may be stored, and removed here, in between
                return data, end
        name = self._name_of(log_key, EXTENSIONS[io_type.value])
        try:
            size = self._objects.size(name)
            if size is None or size <= offset:
                return None, offset
            data = self._objects.read(name, offset, size if max_bytes is None else min(size, offset + max_bytes))
            return data, offset + len(data)
        except FileNotFoundError:  # removed in between
            return None, offset
        except LogStoreError as error:
            log.warning("%s", error)
            message = f"This log cannot be shown now: {error} It is shown when the store answers.\n".encode()
            return (message if io_type.value == "stderr" and not offset else None), offset

    def cloud_storage_has_logs(self, log_key: Sequence[str], io_type: Any, partial: bool = False) -> bool:
        with self._answers_or_not():
            return self._objects.size(self._name_of(log_key, EXTENSIONS[io_type.value])) is not None
        return False

    def download_from_cloud_storage(self, log_key: Sequence[str], io_type: Any, partial: bool = False) -> None:
        """For the UI's button: a copy on this machine, of a complete log. It is removed by a download an hour later."""
        self._forget_downloads(older_than_s=DOWNLOADED_S)
        if not self.is_capture_complete(log_key):
            return
        path = self._local_manager.get_captured_local_path(log_key, EXTENSIONS[io_type.value])
        with self._answers_or_not(), suppress(FileNotFoundError):
            self._objects.get(self._name_of(log_key, EXTENSIONS[io_type.value]), path)
            self._downloaded.append((time.monotonic(), path))

    def upload_to_cloud_storage(self, log_key: Sequence[str], io_type: Any, partial: bool = False) -> None:
        """Store one stream as it is now. Dagster's own captures call it; ours have the thread of uploads."""
        path = self._local_manager.get_captured_local_path(log_key, EXTENSIONS[io_type.value])
        size_bytes = self._local_bytes(log_key, EXTENSIONS[io_type.value])
        if size_bytes:
            self._objects.put(self._name_of(log_key, EXTENSIONS[io_type.value]), path, size_bytes)

    def delete_logs(self, log_key: Sequence[str] | None = None, prefix: Sequence[str] | None = None) -> None:
        """Delete a log, or all below a prefix, here and in the store. If that is away, a warning names the rest."""
        self._local_manager.delete_logs(log_key, prefix)
        try:
            for name in self._stored_names(log_key, prefix):
                self._objects.remove(name)
        except LogStoreError as error:
            path = self._objects.path("/".join(log_key or prefix or ()))
            log.warning("The log %r is deleted on this machine, and not in the store: %s Delete it there.", path, error)

    def download_url_for_type(self, log_key: Sequence[str], io_type: Any) -> str | None:
        """The webserver's own address of the log, behind its login: a signed URL would be for everybody who sees it."""
        if self.has_local_file(log_key, io_type) or self.is_capture_complete(log_key):
            return self._local_manager.get_captured_log_download_url(log_key, io_type)
        return None

    def display_path_for_type(self, log_key: Sequence[str], io_type: Any) -> str:
        extension = EXTENSIONS[io_type.value]
        if self.has_local_file(log_key, io_type):
            return self._local_manager.get_captured_local_path(log_key, extension)
        return self._objects.path(self._name_of(log_key, extension))

    def get_log_keys_for_log_key_prefix(self, log_key_prefix: Sequence[str], io_type: Any) -> Sequence[list[str]]:
        """The logs directly below a prefix, those of this machine and those of the store. A backfill has many."""
        keys = set()
        with suppress(FileNotFoundError):
            keys = {tuple(key) for key in self._local_manager.get_log_keys_for_log_key_prefix(log_key_prefix, io_type)}
        suffix = f".{EXTENSIONS[io_type.value]}"
        folder = "/".join(log_key_prefix)
        with self._answers_or_not():
            names = [name.removeprefix(f"{folder}/") for name in self._objects.names_below(folder)]
            keys |= {(*log_key_prefix, n.removesuffix(suffix)) for n in names if n.endswith(suffix) and "/" not in n}
        return [list(key) for key in sorted(keys)]

    def on_subscribe(self, subscription: Any) -> None:
        self._subscriptions.add_subscription(subscription)

    def on_unsubscribe(self, subscription: Any) -> None:
        self._subscriptions.remove_subscription(subscription)

    def dispose(self) -> None:
        self._subscriptions.dispose()
        self._forget_downloads(older_than_s=0)
        super().dispose()

    def _store_until(self, log_key: Sequence[str], ended: threading.Event, stored: threading.Event) -> None:
        """Store what is left here, then the new parts of a log each interval, and the whole log when it has ended."""
        names, sizes = self._names(log_key), dict.fromkeys(STREAMS, 0)
        self._try(self.store_what_is_left)
        while not ended.wait(max(self._interval_s, sum(sizes.values()) / BYTES_PER_S)):  # all of it is sent each time
            self._try(lambda: self._store_parts(names, sizes))
        self._try(lambda: self._store_whole(names, sizes))
        stored.set()

    def _store_whole(self, names: Mapping[str, str], sizes: dict[str, int]) -> None:
        """Store the rest of a log, and remove it here."""
        self._store_parts(names, sizes)
        files = [os.path.join(self._local_dir, name) for name in names.values()]
        if any(map(os.path.exists, files)):
            self._objects.complete(names[COMPLETE])
        for file in files:
            with suppress(FileNotFoundError):
                os.unlink(file)

    def _store_parts(self, names: Mapping[str, str], sizes: dict[str, int]) -> None:
        """Store both streams, as far as they have grown; `sizes` has the bytes that the store has of them."""
        for stream in STREAMS:
            file = os.path.join(self._local_dir, names[stream])
            size_bytes = os.path.getsize(file) if os.path.exists(file) else 0
            if size_bytes > sizes.get(stream, 0):
                self._objects.put(names[stream], file, size_bytes)
                sizes[stream] = size_bytes

    def _left(self) -> Iterator[str]:
        """The marks of the logs that have ended and are still here."""
        return (str(path) for path in sorted(Path(self._local_dir).rglob(f"*.{COMPLETE}")))

    def _mark_ended(self, log_key: Sequence[str]) -> None:
        """Dagster's own code marks only a capture that ends without an error."""
        path = Path(self._local_manager.get_captured_local_path(log_key, COMPLETE))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def _start_thread(self, act: Callable[[], None]) -> None:
        threading.Thread(target=act, name="uploads of logs", daemon=True).start()

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:  # a full disk, a damaged file: the run continues, and the files stay here
            self._report_away(str(error))
            return
        if self._is_away:
            self._is_away = False
            log.warning("The logs are in %s again.", self._objects.url)

    def _report_away(self, why: str) -> None:
        """Log once that the store is away."""
        if not self._is_away:
            self._is_away = True
            message = "Logs are kept in %s until they are in %s, and nothing waits for that. %s"
            log.warning(message, self._local_dir, self._objects.url, why)

    def _names(self, log_key: Sequence[str]) -> dict[str, str]:
        return {extension: self._name_of(log_key, extension) for extension in (*STREAMS, COMPLETE)}

    def _name_of(self, log_key: Sequence[str], extension: str) -> str:
        """The name of an object, from the local path: Dagster shortens long names, and refuses those with '..'."""
        return os.path.relpath(self._local_manager.get_captured_local_path(log_key, extension), self._local_dir)

    def _stored_names(self, log_key: Sequence[str] | None, prefix: Sequence[str] | None) -> list[str]:
        if log_key:
            return [self._name_of(log_key, extension) for extension in (*STREAMS, COMPLETE)]
        return self._objects.names_below("/".join(prefix or ()))

    def _local_bytes(self, log_key: Sequence[str], extension: str) -> int:
        path = self._local_manager.get_captured_local_path(log_key, extension)
        return os.path.getsize(path) if os.path.exists(path) else 0

    def _forget_downloads(self, older_than_s: float) -> None:
        limit_s = time.monotonic() - older_than_s
        for at_s, path in [download for download in self._downloaded if download[0] <= limit_s]:
            self._downloaded.remove((at_s, path))
            with suppress(FileNotFoundError):
                os.unlink(path)

    @contextmanager
    def _answers_or_not(self) -> Iterator[None]:
        """Log the error of a store that is away, and leave the block: an error would end a thread of Dagster's."""
        try:
            yield
        except LogStoreError as error:
            log.warning("%s", error)


class _Subscriptions(PollingComputeLogSubscriptionManager):
    """The logs that somebody has open in the UI: each is polled until it has ended.

    Dagster's own poll (1.13.27) never reports that a log has ended, and its thread ends with the first error. No issue
    is known; dagster-io/dagster#28110 repaired other ends of subscriptions. Without this, an open log stays "live".
    """

    def _poll(self, shutdown_event: Any) -> None:
        while not shutdown_event.wait(POLL_S):
            for subscription in list(itertools.chain.from_iterable(self._subscriptions.values())):
                try:
                    ended = self.is_complete(subscription)
                    subscription.fetch()
                except Exception:  # of the observer, which may be gone: the others are still notified
                    log.exception("the subscriber of an open log could not be notified")
                    continue
                if ended:
                    self.remove_subscription(subscription)
