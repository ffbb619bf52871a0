"""Files of a commit for the transfer: verified by the SHA-256 of a large file, or the git checksum of another."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from typing import Any

from marin_assets.stages.download.hub.repository import HubFile
from marin_assets.stages.download.hub.source import Source
from marin_assets.stages.download.web.faults import Fault, persist
from marin_assets.stages.download.web.tally import Tally
from marin_assets.stages.download.web.transfer import WrongChecksumError

ROOM = "hub"
"""The hidden folder of an output has its name."""


class CommitFiles:
    """The files of a commit, from the hub or a mirror."""

    def __init__(self, source: Source, commit: str) -> None:
        self._source, self._commit = source, commit

    def blocks(self, file: HubFile, start: int, end: int | None, *, whole: bool) -> Iterator[bytes]:
        """The bytes of a file from `start` to `end`. Raises Fault and HubError."""
        stop = file.size_bytes if end is None else end
        return self._source.blocks(self._commit, file, start, stop, whole=whole)

    def forget(self, file: HubFile) -> None:
        """Forget the signed address of a file."""
        self._source.forget(file)

    def check(self, file: HubFile) -> HubCheck:
        """The checksums to compute of a file."""
        return HubCheck(file)

    def is_complete(self, file: HubFile, entry: dict[str, Any], size_bytes: int) -> bool:
        """Whether an earlier attempt has fetched and verified this very content."""
        same = entry["oid"] == file.oid and file.sha256 in (None, entry["sha256"])
        return bool(same and entry["size"] == file.size_bytes == size_bytes)

    def subject(self, file: HubFile) -> str:
        return f"file {file.path!r} of {self._source.repository}"

    def advice(self, file: HubFile) -> str:
        return "run it again, or report it to the owner of the repository."


class HubCheck:
    """The checksums of one file."""

    def __init__(self, file: HubFile) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self._git = hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)

    def update(self, block: bytes) -> None:
        self._sha256.update(block)
        if self._file.sha256 is None:
            self._git.update(block)

    def entry(self) -> dict[str, Any]:
        """Size, SHA-256 and object of the file. Raises WrongChecksumError if they are not those of the listing."""
        file, sha256, git = self._file, self._sha256.hexdigest(), self._git.hexdigest()
        if file.sha256 is None and git != file.oid:
            raise WrongChecksumError(f"the git checksum {git!r}, expected {file.oid!r} by the listing,")
        if file.sha256 is not None and sha256 != file.sha256:
            raise WrongChecksumError(f"the SHA-256 {sha256!r}, expected {file.sha256!r} by the listing,")
        return {"size": file.size_bytes, "sha256": sha256, "oid": file.oid}


def read_verified(source: Source, commit: str, file: HubFile, *, tally: Tally, stop: threading.Event) -> bytes:
    """The content of a small file. Raises HubError."""

    def read() -> bytes:
        content = b"".join(source.blocks(commit, file, 0, file.size_bytes, whole=True)) if file.size_bytes else b""
        if len(content) < file.size_bytes:
            raise Fault("cut")
        check = HubCheck(file)
        check.update(content)
        try:
            check.entry()
        except WrongChecksumError as error:
            raise Fault("wrong_checksum", str(error)) from None
        return content

    return persist(read, subject=f"The file {file.path!r} of {source.repository}", tally=tally, stop=stop)
