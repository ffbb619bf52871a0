"""Files by ranges, several in flight, resumed where they stopped, and verified before they count.

A range is a part: a file of its own on this machine's disk, as long as what has arrived. A process that was killed
leaves its parts, and the next one continues at the byte where they end. Parts are beside an output on a disk; for an
output in a bucket they are in the machine's temporary folder, and another machine starts the unfinished files again.

When all parts of a file are complete, they are joined under the file's name, whole or not at all: if the SHA-256 of a
large file, or the git checksum of another, is that of the listing. Else the file is fetched once more, and a second
difference is an error.
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
from typing import Any

from marin_assets.stages.download.hub.repository import HubError, HubFile
from marin_assets.stages.download.hub.source import Source
from marin_assets.stages.download.web.faults import Fault, LastingFaultError, persist, stopped
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
Range = tuple[int, int]


class _WrongChecksumError(Exception):
    """Joined parts whose checksum is not that of the listing: both values."""


@dataclass
class Pending:
    """A file in work."""

    file: HubFile
    folder: str
    """Folder of its parts."""
    ranges: list[Range]
    unfinished: int
    """Number of its ranges that are not complete."""
    is_stream: bool = False
    """The server sends the whole file for every range."""

    def part(self, span: Range) -> str:
        return os.path.join(self.folder, f"{span[0]}-{span[1]}")


class Transfer:
    """The transfer of one shard's files from a commit into an output."""

    def __init__(
        self, source: Source, commit: str, output_path: str, *, range_bytes: int, tally: Tally, stop: threading.Event
    ) -> None:
        self._source, self._commit, self._output_path = source, commit, output_path
        self._range_bytes, self._tally, self._stop = range_bytes, tally, stop
        self._parts = parts_folder(output_path)
        self._lock = threading.Lock()

    def fetch(self, files: Sequence[HubFile], *, in_flight: int) -> None:
        """Fetch the files, `in_flight` ranges at a time. Raises HubError for the first that fails."""
        jobs = self._jobs(self._without_complete(files))
        with ThreadPoolExecutor(in_flight, thread_name_prefix="hub") as pool:
            try:
                workers = [pool.submit(self._work, jobs) for _ in range(in_flight)]
                ended, _ = wait(workers, return_when=FIRST_EXCEPTION)
                failed = [error for worker in ended if (error := worker.exception()) is not None]
            finally:
                self._stop.set()  # the others end at their next block
        if failed:
            raise failed[0]

    def _jobs(self, files: Sequence[HubFile]) -> Iterator[tuple[Pending, Range]]:
        for file in files:
            key = hashlib.sha256(f"{file.path}\n{file.oid}".encode(errors="surrogatepass")).hexdigest()[:32]
            starts = range(0, file.size_bytes, self._range_bytes) or [0]
            ranges = [(start, min(start + self._range_bytes, file.size_bytes)) for start in starts]
            pending = Pending(file, os.path.join(self._parts, key), ranges, unfinished=len(ranges))
            yield from ((pending, span) for span in ranges)

    def _without_complete(self, files: Sequence[HubFile]) -> list[HubFile]:
        """The files that no earlier attempt has completed; the others are counted."""
        marks = set(names_below(join(self._output_path, ".checksums")))
        marked = [file for file in files if f"{file.path}.json" in marks]
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            checked = list(pool.map(lambda file: is_complete(file, self._output_path), marked))
        complete = {file.path for file, is_whole in zip(marked, checked, strict=True) if is_whole}
        for file in files:
            if file.path in complete:
                self._tally.had(file.size_bytes)
                self._tally.file(file.size_bytes)
        return [file for file in files if file.path not in complete]

    def _work(self, jobs: Iterator[tuple[Pending, Range]]) -> None:
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

    def _complete(self, pending: Pending) -> None:
        """Join the parts; fetch the file once more if its checksum is wrong. Raises HubError."""
        for again in (False, True):
            if pending.is_stream:
                pending.ranges = [(0, pending.file.size_bytes)]
                self._fetch_range(pending, pending.ranges[0])
            try:
                self._join(pending)
                break
            except _WrongChecksumError as error:
                shutil.rmtree(pending.folder)
                if again:
                    raise HubError(
                        f"The file {pending.file.path!r} of {self._source.repository} has {error} twice. Its parts are "
                        "removed; run it again, or report it to the owner of the repository."
                    ) from None
                self._tally.retry("wrong_checksum")
                self._tally.again(pending.file.size_bytes)
                self._source.forget(pending.file)
                for span in pending.ranges:
                    self._fetch_range(pending, span)
        shutil.rmtree(pending.folder)
        self._source.forget(pending.file)
        self._tally.file(pending.file.size_bytes)

    def _fetch_range(self, pending: Pending, span: Range) -> None:
        """Fetch a part to its end. Raises HubError."""
        os.makedirs(pending.folder, exist_ok=True)
        start, end = span
        is_whole = start == 0 and end == pending.file.size_bytes
        with open(pending.part(span), "ab", buffering=0) as part:
            self._lock_part(part, pending.file)
            if part.tell() > end - start:
                part.truncate(part.seek(0))
            self._tally.had(part.tell())

            def fetch_rest() -> None:
                at = start + part.tell()
                for block in self._source.blocks(self._commit, pending.file, at, end, whole=is_whole):
                    _write(part, block)
                    self._tally.fetched(len(block))
                    if self._stop.is_set():
                        raise stopped()
                if part.tell() < end - start:
                    raise Fault("cut", f"the answer ended at byte {start + part.tell()}, expected {end}")

            subject = f"The file {pending.file.path!r} of {self._source.repository}"
            try:
                if part.tell() < end - start:
                    persist(fetch_rest, subject=subject, tally=self._tally, stop=self._stop, progress=part.tell)
            except LastingFaultError as error:
                if error.reason != "range_ignored":
                    raise
                pending.is_stream = True

    def _lock_part(self, part: Any, file: HubFile) -> None:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HubError(
                f"Another process of this machine fetches {file.path!r} into {self._output_path!r}. Wait for it, or "
                "end it, and run again."
            ) from None

    def _join(self, pending: Pending) -> None:
        """Write the file and its mark. Raises _WrongChecksumError, and then nothing appears in the output."""
        file = pending.file
        sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)
        with open_atomic(join(self._output_path, file.path)) as target:
            for span in pending.ranges:
                with open(pending.part(span), "rb") as part:
                    while block := part.read(BLOCK_BYTES):
                        target.write(block)
                        sha256.update(block)
                        if file.sha256 is None:
                            git.update(block)
            require_checksum(file, sha256.hexdigest(), git.hexdigest())
        mark = {"size": file.size_bytes, "sha256": sha256.hexdigest(), "oid": file.oid}
        write_json(mark_path(file, self._output_path), mark)


def read_verified(source: Source, commit: str, file: HubFile, *, tally: Tally, stop: threading.Event) -> bytes:
    """The content of a small file. Raises HubError."""

    def read() -> bytes:
        content = b"".join(source.blocks(commit, file, 0, file.size_bytes, whole=True)) if file.size_bytes else b""
        if len(content) < file.size_bytes:
            raise Fault("cut")
        git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
        try:
            require_checksum(file, hashlib.sha256(content).hexdigest(), git.hexdigest())
        except _WrongChecksumError as error:
            raise Fault("wrong_checksum", str(error)) from None
        return content

    return persist(read, subject=f"The file {file.path!r} of {source.repository}", tally=tally, stop=stop)


def require_checksum(file: HubFile, sha256: str, git: str) -> None:
    """Raise _WrongChecksumError if the checksum that the listing has is another one."""
    if file.sha256 is None and git != file.oid:
        raise _WrongChecksumError(f"the git checksum {git!r}, expected {file.oid!r} by the listing,")
    if file.sha256 is not None and sha256 != file.sha256:
        raise _WrongChecksumError(f"the SHA-256 {sha256!r}, expected {file.sha256!r} by the listing,")


def is_complete(file: HubFile, output_path: str) -> bool:
    """Whether an earlier attempt has fetched and verified this very content."""
    try:
        mark, size_bytes = read_json(mark_path(file, output_path)), size_of(join(output_path, file.path))
    except FileNotFoundError:
        return False
    same = mark["oid"] == file.oid and file.sha256 in (None, mark["sha256"])
    return bool(same and mark["size"] == file.size_bytes == size_bytes)


def mark_path(file: HubFile, output_path: str) -> str:
    """The path of a JSON file that a verified file has: size, sha256, oid."""
    return join(output_path, ".checksums", f"{file.path}.json")


def parts_folder(output_path: str) -> str:
    """The folder of the parts, on this machine's disk. Raises HubError for one that belongs to another user."""
    if is_local(output_path):
        return os.path.join(absolute(output_path), ".hub", "parts")
    own = os.path.join(tempfile.gettempdir(), f"marin-hub-{os.getuid()}")
    os.makedirs(own, mode=0o700, exist_ok=True)
    if os.lstat(own).st_uid != os.getuid():
        raise HubError(f"The folder {own!r} belongs to another user. Remove it, or set TMPDIR to another folder.")
    return os.path.join(own, hashlib.sha256(output_path.encode()).hexdigest()[:16])


def remove_parts(output_path: str) -> None:
    """Remove all parts of an output from this machine, after the last file: also those of an earlier commit."""
    if os.path.isdir(folder := parts_folder(output_path)):
        shutil.rmtree(folder)


def _write(part: Any, block: bytes) -> None:
    rest = memoryview(block)
    while rest:  # without a buffer a write may take a part
        rest = rest[part.write(rest) :]
