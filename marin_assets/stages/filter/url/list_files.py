"""The files of lists in a folder of any store: plain ones, and those in archives (.whl, .zip, .tar.gz, and one in the
other). Archives are read as streams; nothing is extracted."""

from __future__ import annotations

import posixpath
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from typing import IO

from marin_assets.stages.filter.url.errors import UrlFilterError
from marin_resources.storage.files import StoredFile, open_to_read, stored_files

ZIPS = (".whl", ".zip")
TARS = (".tar.gz", ".tgz")
MAX_ARCHIVES = 16
"""A folder with more archives is another one than the folder of lists, and reading them may take hours."""
CHUNK_BYTES = 1024**2
MAX_ENTRY_BYTES = 1024**2
"""No address or word is longer; a longer line is no list."""
COMMENT = ord("#")
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError, NotImplementedError)
"""Errors of damaged archives, and of those with a password or an unknown compression."""


def list_files(path: str, names: Collection[str]) -> tuple[StoredFile, ...]:
    """Return the files at `path`, a folder or one file, that are or may contain the lists `names`.

    Raises UrlFilterError if nothing exists there, or if the folder has more than 16 archives.
    """
    try:
        stored = stored_files(path)
    except FileNotFoundError as error:
        raise UrlFilterError(
            f"url_lists_path is {path!r}, where nothing exists, expected the folder or archive of the lists. Download "
            "them first, or correct the path."
        ) from error
    archives = sum(file.name.endswith(ZIPS + TARS) for file in stored)
    if archives > MAX_ARCHIVES:
        raise UrlFilterError(
            f"url_lists_path is {path!r}, a folder with {archives:,} archives, expected at most {MAX_ARCHIVES}. "
            "Name the folder or the archive that has the lists."
        )
    return tuple(file for file in stored if file.name.endswith(ZIPS + TARS) or posixpath.basename(file.name) in names)


def members(file: StoredFile, names: Collection[str]) -> Iterator[tuple[str, str, IO[bytes]]]:
    """Yield (name, place, stream) of each list `names` that the file is or contains. Read a stream before the next.

    Raises UrlFilterError for a damaged archive; reading a stream raises one of DAMAGED.
    """
    with open_to_read(file.path) as stream:
        if file.name.endswith(ZIPS):
            yield from _of_zip(file.path, stream, names)
        elif file.name.endswith(TARS):
            yield from _of_tar(file.path, stream, names)
        else:
            yield posixpath.basename(file.name), file.path, stream


def _of_zip(place: str, stream: IO[bytes], names: Collection[str]) -> Iterator[tuple[str, str, IO[bytes]]]:
    with zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            name, inside = posixpath.basename(info.filename), f"{place}/{info.filename}"
            if name in names:
                with archive.open(info) as member:
                    yield name, inside, member
            elif name.endswith(TARS):
                with archive.open(info) as member:
                    yield from _of_tar(inside, member, names)


def _of_tar(place: str, stream: IO[bytes], names: Collection[str]) -> Iterator[tuple[str, str, IO[bytes]]]:
    with tarfile.open(fileobj=stream, mode="r|gz") as archive:
        for info in archive:
            name = posixpath.basename(info.name)
            if name in names and (member := archive.extractfile(info)) is not None:
                yield name, f"{place}/{info.name}", member


def entries_in(stream: IO[bytes], place: str) -> Iterator[list[bytes]]:
    """Yield the entries of a list in parts: its lines, without blanks around them, empty lines and lines with "#".

    Raises UrlFilterError for a line of over 1 MiB.
    """
    rest = b""
    while chunk := stream.read(CHUNK_BYTES):
        *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
        if len(rest) > MAX_ENTRY_BYTES:
            raise UrlFilterError(
                f"{place!r} has a line of over {MAX_ENTRY_BYTES:,} bytes, expected a list with one entry a line. "
                "Download the list again."
            )
        yield _entries(lines)
    yield _entries([rest])


def _entries(lines: list[bytes]) -> list[bytes]:
    entries = list(filter(None, map(bytes.strip, lines)))
    return [entry for entry in entries if entry[0] != COMMENT]
