"""Files by ranges, several in flight, resumed where they stopped, and verified before they count.

A range is a part: a file of its own on this machine's disk, as long as what has arrived. A process that was killed
leaves its parts, and the next one continues at the byte where they end. Parts are beside an output on a disk; for an
output in a bucket they are in the machine's temporary folder, and another machine starts the unfinished files again.

When all parts of a file are complete, they are joined under the file's name, whole or not at all, if their checksums
are the expected ones. Else the file is fetched once more, and a second difference is an error.

Parts belong to one state of a file at its source: of a file that has changed since, all parts are fetched again. A file
without a size or a mark of its state is one stream, which begins again after each failure.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from marin_assets.stages.download.web.faults import DownloadError, Fault, LastingFaultError, persist, stopped
from marin_assets.stages.download.web.tally import Tally
from marin_resources.storage.files import (
    REQUESTS_AT_ONCE,
    names_below,
    open_atomic,
    read_json,
    size_of,
    write_json,
)
from marin_resources.storage.paths import absolute, is_local, join

BLOCK_BYTES = 2**20
Range = tuple[int, int | None]
"""The first byte and the one after the last, None for the unknown end of a file."""


class WrongChecksumError(Exception):
    """Content whose checksum is not the expected one: a phrase with both values."""


class RemoteFile(Protocol):
    """A file to fetch."""

    @property
    def path(self) -> str:
        """The name below the output."""

    @property
    def size_bytes(self) -> int | None:
        """The listed size; None if the source has none."""

    @property
    def state(self) -> str:
        """Changes with the content; "" if the source has no mark of it."""


F = TypeVar("F", bound=RemoteFile)
F_contra = TypeVar("F_contra", bound=RemoteFile, contravariant=True)


class Check(Protocol):
    """The checksums of the content of one file, which is passed in blocks."""

    def update(self, block: bytes) -> None:
        """Add a block."""

    def entry(self) -> dict[str, Any]:
        """The file's JSON in `.checksums`. Raises WrongChecksumError."""


class Remote(Protocol[F_contra]):
    """The place that has the files."""

    def blocks(self, file: F_contra, start: int, end: int | None, *, whole: bool) -> Iterator[bytes]:
        """The bytes of a file from `start` to `end`, the file's end if `whole`. Raises Fault and MarinError."""

    def forget(self, file: F_contra) -> None:
        """Forget all that is kept of a file, as it is complete or wrong."""

    def check(self, file: F_contra) -> Check:
        """The checksums to compute of a file."""

    def is_complete(self, file: F_contra, entry: dict[str, Any], size_bytes: int) -> bool:
        """Whether an earlier attempt, which wrote the entry, has fetched and verified this very content."""

    def subject(self, file: F_contra) -> str:
        """A phrase for errors: "file 'a.bin' of the dataset 'lab/texts'"."""

    def advice(self, file: F_contra) -> str:
        """A clause for a checksum that is wrong twice: what to do."""


@dataclass
class Pending(Generic[F]):
    """A file in work."""

    file: F
    folder: str
    """Folder of its parts."""
    ranges: list[Range]
    unfinished: int
    """Number of its ranges that are not complete."""
    is_stream: bool = False
    """The server sends the whole file for every range."""

    def part(self, span: Range) -> str:
        start, end = span
        return os.path.join(self.folder, f"{start}-{'' if end is None else end}")


class Transfer(Generic[F]):
    """The transfer of one shard's files into an output. `room`: a name of its hidden folder, "hub"."""

    def __init__(
        self, remote: Remote[F], output_path: str, *, room: str, range_bytes: int, tally: Tally, stop: threading.Event
    ) -> None:
        self._remote, self._output_path = remote, output_path
        self._range_bytes, self._tally, self._stop = range_bytes, tally, stop
        self._parts = parts_folder(output_path, room)
        self._lock = threading.Lock()

    def fetch(self, files: Sequence[F], *, in_flight: int) -> None:
        """Fetch the files, `in_flight` ranges at a time. Raises the MarinError of the first that fails."""
        pending = [self._pending(file) for file in self._without_complete(files)]
        jobs = ((file, span) for file in pending for span in file.ranges)
        workers = min(in_flight, sum(len(file.ranges) for file in pending)) or 1
        with ThreadPoolExecutor(workers, thread_name_prefix="transfer") as pool:
            try:
                submitted = [pool.submit(self._work, jobs) for _ in range(workers)]
                ended, _ = wait(submitted, return_when=FIRST_EXCEPTION)
                failed = [error for worker in ended if (error := worker.exception()) is not None]
            finally:
                self._stop.set()  # the others end at their next block
        if failed:
            raise failed[0]

    def _pending(self, file: F) -> Pending[F]:
        key = hashlib.sha256(f"{file.path}\n{file.state}".encode(errors="surrogatepass")).hexdigest()[:32]
        ranges: list[Range] = [(0, file.size_bytes)]
        if file.state and file.size_bytes:  # of a file without a mark, two ranges might be of two contents
            starts = range(0, file.size_bytes, self._range_bytes)
            ranges = [(start, min(start + self._range_bytes, file.size_bytes)) for start in starts]
        return Pending(file, os.path.join(self._parts, key), ranges, unfinished=len(ranges))

    def _without_complete(self, files: Sequence[F]) -> list[F]:
        """The files that no earlier attempt has completed; the others are counted."""
        if len(files) > 1:  # one listing in place of a request for each
            names = set(names_below(join(self._output_path, ".checksums")))
            marked = [file for file in files if f"{file.path}.json" in names]
        else:
            marked = list(files)
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            sizes = dict(zip((file.path for file in marked), pool.map(self._complete_size, marked), strict=True))
        for size_bytes in sizes.values():
            if size_bytes is not None:
                self._tally.had(size_bytes)
                self._tally.file(size_bytes)
        return [file for file in files if sizes.get(file.path) is None]

    def _complete_size(self, file: F) -> int | None:
        """The size of a file that an earlier attempt has completed; None without one."""
        try:
            entry = read_json(mark_path(file.path, self._output_path))
            size_bytes = size_of(join(self._output_path, file.path))
        except FileNotFoundError:
            return None
        return size_bytes if self._remote.is_complete(file, entry, size_bytes) else None

    def _work(self, jobs: Iterator[tuple[Pending[F], Range]]) -> None:
        while not self._stop.is_set():
            with self._lock:
                job = next(jobs, None)
            if job is None:
                return
            pending, span = job
            self._fetch_range(pending, span)
            with self._lock:
                pending.unfinished -= 1
                is_last = not pending.unfinished
            if is_last:
                self._complete(pending)

    def _complete(self, pending: Pending[F]) -> None:
        """Join the parts; fetch the file once more if its checksum is wrong. Raises DownloadError."""
        for again in (False, True):
            if pending.is_stream:
                pending.ranges = [(0, pending.file.size_bytes)]
                self._fetch_range(pending, pending.ranges[0])
            try:
                size_bytes = self._join(pending)
                break
            except WrongChecksumError as error:
                size_bytes = sum(os.path.getsize(pending.part(span)) for span in pending.ranges)
                shutil.rmtree(pending.folder)
                if again:
                    raise DownloadError(
                        f"The {self._remote.subject(pending.file)} has {error} twice. Its parts are removed; "
                        f"{self._remote.advice(pending.file)}"
                    ) from None
                self._tally.retry("wrong_checksum")
                self._tally.again(size_bytes)
                self._remote.forget(pending.file)
                for span in pending.ranges:
                    self._fetch_range(pending, span)
        shutil.rmtree(pending.folder)
        self._remote.forget(pending.file)
        self._tally.file(size_bytes)

    def _fetch_range(self, pending: Pending[F], span: Range) -> None:
        """Fetch a part to its end. Raises MarinError."""
        os.makedirs(pending.folder, exist_ok=True)
        start, end = span
        is_whole = start == 0 and end == pending.file.size_bytes
        with open(pending.part(span), "ab", buffering=0) as part:
            self._lock_part(part, pending.file)
            if not _continues(pending.file, span, part.tell()):
                part.truncate(part.seek(0))
            self._tally.had(part.tell())

            def fetch_rest() -> None:
                if not _continues(pending.file, span, part.tell()):
                    self._tally.again(part.tell())
                    part.truncate(part.seek(0))
                at = start + part.tell()
                for block in self._remote.blocks(pending.file, at, end, whole=is_whole):
                    _write(part, block)
                    self._tally.fetched(len(block))
                    if self._stop.is_set():
                        raise stopped()
                if end is not None and part.tell() < end - start:
                    raise Fault("cut", f"the answer ended at byte {start + part.tell()}, expected {end}")

            subject = f"The {self._remote.subject(pending.file)}"
            try:
                if end is None or part.tell() < end - start:
                    persist(fetch_rest, subject=subject, tally=self._tally, stop=self._stop, progress=part.tell)
            except LastingFaultError as error:
                if error.reason != "range_ignored":
                    raise
                pending.is_stream = True

    def _lock_part(self, part: Any, file: F) -> None:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DownloadError(
                f"Another process of this machine fetches {file.path!r} into {self._output_path!r}. Wait for it, or "
                "end it, and run again."
            ) from None

    def _join(self, pending: Pending[F]) -> int:
        """Write the file and its mark. Return its size.

        Raises WrongChecksumError, and then nothing appears in the output.
        """
        check, size_bytes = self._remote.check(pending.file), 0
        with open_atomic(join(self._output_path, pending.file.path)) as target:
            for span in pending.ranges:
                with open(pending.part(span), "rb") as part:
                    while block := part.read(BLOCK_BYTES):
                        target.write(block)
                        check.update(block)
                        size_bytes += len(block)
            entry = check.entry()
        write_json(mark_path(pending.file.path, self._output_path), entry)
        return size_bytes


def _continues(file: RemoteFile, span: Range, size_bytes: int) -> bool:
    """Whether a part of this size can be continued."""
    start, end = span
    return bool(file.state) and end is not None and size_bytes <= end - start


def mark_path(path: str, output_path: str) -> str:
    """The path of a JSON file that a verified file has, with its size and SHA-256."""
    return join(output_path, ".checksums", f"{path}.json")


def parts_folder(output_path: str, room: str) -> str:
    """The folder of the parts, on this machine's disk. Raises DownloadError for one that belongs to another user."""
    if is_local(output_path):
        return os.path.join(absolute(output_path), f".{room}", "parts")
    own = os.path.join(tempfile.gettempdir(), f"marin-{room}-{os.getuid()}")
    os.makedirs(own, mode=0o700, exist_ok=True)
    if os.lstat(own).st_uid != os.getuid():
        raise DownloadError(f"The folder {own!r} belongs to another user. Remove it, or set TMPDIR to another folder.")
    return os.path.join(own, hashlib.sha256(output_path.encode()).hexdigest()[:16])


def remove_parts(output_path: str, room: str) -> None:
    """Remove all parts of an output from this machine, after the last file: also those of an earlier state."""
    if os.path.isdir(folder := parts_folder(output_path, room)):
        shutil.rmtree(folder)


def _write(part: Any, block: bytes) -> None:
    rest = memoryview(block)
    while rest:  # without a buffer a write may take a part
        rest = rest[part.write(rest) :]
