"""The members of a tar archive that is read once, from the start to the end, in bounded memory."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator
from typing import IO, cast

from marin_assets.documents.jsonl.lines import CHUNK_BYTES
from marin_assets.stages.download.warc.record import CrawlError

MAX_HEADER_BYTES = 2**20
"""Bytes of the headers before a member of the archive. A hostile one claims gigabytes, which tarfile would hold."""


class Stream:
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


def tar_members(
    stream: Stream, suffixes: tuple[str, ...], counts: Counter[str]
) -> Iterator[tuple[str, int, Iterator[bytes]]]:
    """Yield (name, bytes, chunks) of each file in the archive whose name ends with one of `suffixes`.

    Chunks that were not read are skipped. Adds to `counts` ignored_members: folders, links, and files of other names.
    Raises tarfile.TarError for a damaged archive, CrawlError for too long headers, and the errors of the stream.
    """
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
            chunks = iter(lambda content=content: content.read(CHUNK_BYTES), b"")  # type: ignore[misc]
            if member.name.lower().endswith(suffixes):
                yield member.name, member.size, chunks
            else:
                counts["ignored_members"] += 1
            for _ in chunks:
                pass


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
