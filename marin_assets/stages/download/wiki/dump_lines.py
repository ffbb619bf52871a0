"""The lines of a dump: a tar archive of NDJSON files, or one such file; plain or compressed with gzip.

The file is read once, from the start to the end, in bounded memory. Damage within a gzip stream ends it, as nothing
after it can be read: the dump is cut there.
"""

from __future__ import annotations

import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import IO, cast

from marin_assets.documents.lines import CHUNK_BYTES, TooLong, decompressed_chunks, split_lines
from marin_assets.stages.download.warc.members import RawFile, Readable
from marin_assets.stages.download.warc.record import CrawlError

MEMBERS = (".ndjson", ".json", ".jsonl")
ARCHIVES = (".tar", ".tar.gz", ".tgz")
MAX_HEADER_BYTES = 2**20
"""Bytes of the headers before a member of the archive. A hostile one claims gigabytes, which tarfile would hold."""


class CutError(Exception):
    """The dump ends early, or nothing after this place can be read."""


def dump_lines(file: Readable, name: str, counts: Counter[str]) -> Iterator[tuple[str, int, bytes | TooLong]]:
    """Yield (member, number from 1, line) of a dump; the member of a file that is no archive is "".

    Adds to `counts` ignored_members: folders, links, and files of other names. Raises CutError for a damaged or cut
    file, and the errors of its store or server.
    """
    raw = RawFile(file, 0)
    compression = ".gz" if file.read_at(0, 2) == b"\x1f\x8b" else ""
    stream = _Stream(decompressed_chunks(cast(IO[bytes], raw), compression))
    try:
        if stream.peek(512)[257:262] == b"ustar":
            yield from _members(stream, counts)
        elif not file.size_bytes or name.lower().endswith(ARCHIVES):
            raise CutError("it is empty" if not file.size_bytes else "it does not begin as a tar archive")
        else:
            for number, line in enumerate(split_lines(iter(lambda: stream.read(CHUNK_BYTES), b"")), 1):
                yield "", number, line
        while stream.read(CHUNK_BYTES):  # to the checksum of the gzip stream
            pass
    except (EOFError, OSError, zlib.error, tarfile.TarError) as error:
        if raw.error is not None:
            raise raw.error from error
        raise CutError(f"{type(error).__name__}: {error}") from error


def _members(stream: _Stream, counts: Counter[str]) -> Iterator[tuple[str, int, bytes | TooLong]]:
    stream.limit = MAX_HEADER_BYTES  # to open the archive reads its first header
    with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|", tarinfo=_Member) as archive:
        while True:
            stream.limit = MAX_HEADER_BYTES
            member = archive.next()
            stream.limit = None
            if member is None:
                return
            archive.members = []  # type: ignore[attr-defined]
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                counts["ignored_members"] += 1
                continue
            is_read = member.name.lower().endswith(MEMBERS)
            counts["ignored_members"] += not is_read
            chunks = iter(lambda content=content: content.read(CHUNK_BYTES), b"")  # type: ignore[misc]
            if not is_read:
                for _ in chunks:
                    pass
                continue
            for number, line in enumerate(split_lines(chunks), 1):
                yield member.name, number, line


class _Member(tarfile.TarInfo):
    """A header of the archive. To tarfile, a damaged one and the end of the file end an archive without an error."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> _Member:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"the archive has no valid header at byte {tarfile_.offset}: {error}") from error


class _Stream:
    """Chunks as a file, which is read forward."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held = chunks, b""
        self.limit: int | None = None
        """Bytes that may still be read; None for any number."""

    def peek(self, size: int) -> bytes:
        while len(self._held) < size and (chunk := next(self._chunks, b"")):
            self._held += chunk
        return self._held[:size]

    def read(self, size: int) -> bytes:
        """The next bytes, fewer than `size` where a chunk ends, none at the end."""
        if not self._held:
            self._held = next(self._chunks, b"")
        data, self._held = self._held[:size], self._held[size:]
        if self.limit is not None:
            self.limit -= len(data)
            if self.limit < 0:
                raise CrawlError(
                    f"An archive has headers of more than {MAX_HEADER_BYTES} bytes before a member, as no dump has. "
                    "Download it again."
                )
        return data
