"""Read the members of an archive, zip or tar, one after the other. Nothing is unpacked onto a disk.

In:  the path of an archive, the limit of one member in bytes, and a function that rejects names.
Out: name and content of each member, or the reason why it is not read. No member is skipped without one.

A zip is read in the order of its names, a tar in its own order. A damaged archive, and one that expands too much, is a
DocumentError: one sentence with its path.
"""

from __future__ import annotations

import io
import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Self

import zstandard

from marin_assets.documents import DocumentError
from marin_assets.documents.jsonl.lines import CHUNK_BYTES, decompressed_chunks, require_expansion
from marin_assets.stages.transform.text.text_rejections import Rejected
from marin_resources.storage.files import open_to_read

TARS = {
    ".tar": "",
    **dict.fromkeys((".tar.gz", ".tgz"), ".gz"),
    **dict.fromkeys((".tar.bz2", ".tbz2"), ".bz2"),
    **dict.fromkeys((".tar.xz", ".txz"), ".xz"),
    **dict.fromkeys((".tar.zst", ".tzst"), ".zst"),
}
"""End of a tar's name -> its compression."""
ARCHIVES = (".zip", *TARS)
REASONS = ("unsafe_name", "duplicate_name", "not_a_file", "encrypted", "too_large")
"""Reasons of this module. The function that rejects names has its own."""

DRIVE = re.compile(r"[A-Za-z]:")
ENCRYPTED = 0x1 | 0x40
"""Bits of a zip member's flags: encrypted, and encrypted by a certificate."""
ZIP_END_BYTES = 22
"""Size of a zip's last record, without the comment after it."""
MANY = 0xFFFF
ZIP_READ_BYTES = 4096
"""Compressed bytes of one read. zipfile decompresses them whole: 4 kB of bzip2 become at most 80 MB."""
DAMAGES = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError, struct.error, EOFError,
    OSError, ValueError, OverflowError, RecursionError, NotImplementedError,
)  # fmt: skip
"""Errors that the libraries raise for the bytes of an archive."""


def read_members(
    path: str, *, reject_name: Callable[[str], str], max_bytes: int
) -> Iterator[tuple[str, bytes | Rejected]]:
    """Yield (name in the archive, content or Rejected) of all members but folders.

    `reject_name` returns a reason, or "" to read the member. Of members with one name the first is read.
    """
    members = _zip_members if path.lower().endswith(".zip") else _tar_members
    names = _Names(reject_name)
    try:
        with open_to_read(path) as raw:
            yield from members(path, raw, names, max_bytes)
    except DocumentError:
        raise
    except DAMAGES as error:
        raise DocumentError(
            f"The archive {path!r} is damaged, truncated or of another kind than its name "
            f"({type(error).__name__}: {error!s:.200}). Write or download it again, or unpack it and pack it as .zip."
        ) from error


class _Names:
    """The names of the members so far."""

    def __init__(self, reject_name: Callable[[str], str]) -> None:
        self._reject_name = reject_name
        self._read: set[str] = set()

    def check(self, stored: str) -> tuple[str, str]:
        """Return a member's name without "." and "//", and a reason to reject it, "" for none."""
        parts = [part for part in stored.split("/") if part not in ("", ".")]
        name = "/".join(parts)
        if not parts or stored.startswith("/") or ".." in parts or DRIVE.match(stored):
            return stored, "unsafe_name"
        if reason := self._reject_name(name):
            return name, reason
        if name in self._read:
            return name, "duplicate_name"
        self._read.add(name)
        return name, ""


def _zip_members(path: str, raw: IO[bytes], names: _Names, max_bytes: int) -> Iterator[tuple[str, bytes | Rejected]]:
    archive_bytes, read_bytes = raw.seek(0, 2), 0
    with zipfile.ZipFile(raw) as archive:
        _require_all(archive, raw)
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            stored = info.filename.replace("\\", "/")  # as some programs on Windows write it
            kind = stat.S_IFMT(info.external_attr >> 16)
            is_folder = stored.endswith("/") or kind == stat.S_IFDIR
            if is_folder and not info.file_size:
                continue
            is_file = kind in (0, stat.S_IFREG) and not is_folder
            name, reason = names.check(stored) if is_file else (stored, "not_a_file")
            if not reason and info.flag_bits & ENCRYPTED:
                reason = "encrypted"
            if not reason and info.file_size > max_bytes:
                reason = "too_large"
            if reason:
                yield name, Rejected(reason)
                continue
            read_bytes += info.file_size  # zipfile reads no more; members that overlap are read more than once
            require_expansion(path, read_bytes, archive_bytes)
            with archive.open(info) as file:
                yield name, b"".join(iter(lambda: file.read(ZIP_READ_BYTES), b""))


def _require_all(archive: zipfile.ZipFile, raw: IO[bytes]) -> None:
    """Raise BadZipFile unless the directory has as many members as the zip's last record counts: zipfile takes what is
    left of a damaged directory."""
    raw.seek(-ZIP_END_BYTES - len(archive.comment), 2)
    (counted,) = struct.unpack_from("<H", raw.read(ZIP_END_BYTES), 10)
    listed = len(archive.infolist())
    if counted not in (listed & MANY, MANY):  # MANY: the number is in another record
        raise zipfile.BadZipFile(f"{listed} members are listed, and {counted} are counted")


def _tar_members(path: str, raw: IO[bytes], names: _Names, max_bytes: int) -> Iterator[tuple[str, bytes | Rejected]]:
    archive_bytes, read_bytes = raw.seek(0, 2), 0
    raw.seek(0)
    compression = next(compression for suffix, compression in TARS.items() if path.lower().endswith(suffix))
    stream = io.BufferedReader(_Decompressed(path, raw, compression), CHUNK_BYTES)
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_StrictInfo) as archive:
        while (info := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # it keeps all, which are 1 kB each
            if info.isdir():
                continue
            name, reason = names.check(info.name) if info.isreg() else (info.name, "not_a_file")
            if not reason and info.size > max_bytes:
                reason = "too_large"
            if reason:
                yield name, Rejected(reason)
                continue
            read_bytes += info.size  # the holes of a sparse file take no bytes of the stream
            require_expansion(path, read_bytes, archive_bytes)
            file = archive.extractfile(info)
            assert file is not None, "it is a regular file"
            yield name, file.read()
        _require_end(archive)


def _require_end(archive: tarfile.TarFile) -> None:
    """Read the zeros after the last member, and with them the checksum of the compression. Raises ReadError for data:
    of two tars in one file tarfile reads the first."""
    assert archive.fileobj is not None
    while rest := archive.fileobj.read(CHUNK_BYTES):
        if rest.strip(b"\0"):
            raise tarfile.ReadError("data after the end, as of a second archive")


class _StrictInfo(tarfile.TarInfo):
    """Raises for a damaged header. tarfile takes one after the first member for the archive's end."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not buf.strip(b"\0"):
                raise  # the end
            raise tarfile.ReadError(f"{error}, in place of a member or the end") from error


class _Decompressed(io.RawIOBase):
    """The decompressed content of a file, to be read forward only. Raises DocumentError if it expands too much."""

    def __init__(self, path: str, raw: IO[bytes], compression: str) -> None:
        self._path, self._raw = path, raw
        self._chunks = decompressed_chunks(raw, compression)
        self._pending = memoryview(b"")
        self._bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer or a part of it. Return the number of bytes, 0 at the end."""
        while not self._pending and (chunk := next(self._chunks, None)) is not None:
            self._pending = memoryview(chunk)  # a chunk may have 100 MB: a slice of a view copies nothing
            self._bytes += len(chunk)
            require_expansion(self._path, self._bytes, self._raw.tell())
        size = min(len(buffer), len(self._pending))
        buffer[:size] = self._pending[:size]
        self._pending = self._pending[size:]
        return size
