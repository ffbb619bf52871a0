"""The lines of a dump: a tar archive of NDJSON files, or one such file; plain or compressed with gzip.

The file is read once, from the start to the end, in bounded memory. Damage within a gzip stream ends it, as nothing
after it can be read: the dump is cut there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import IO, cast

from marin_assets.documents.jsonl.lines import CHUNK_BYTES, TooLong, decompressed_chunks, split_lines
from marin_assets.stages.download.crawl.damage import CutError, cut_errors
from marin_assets.stages.download.stores.tar_stream import Stream, tar_members
from marin_assets.stages.download.warc.members import RawFile, Readable

MEMBERS = (".ndjson", ".json", ".jsonl")
ARCHIVES = (".tar", ".tar.gz", ".tgz")


def dump_lines(file: Readable, name: str, counts: Counter[str]) -> Iterator[tuple[str, int, bytes | TooLong]]:
    """Yield (member, number from 1, line) of a dump; the member of a file that is no archive is "".

    Adds to `counts` ignored_members: folders, links, and files of other names. Raises CutError for a damaged or cut
    file, and the errors of its store or server.
    """
    raw = RawFile(file, 0)
    compression = ".gz" if file.read_at(0, 2) == b"\x1f\x8b" else ""
    stream = Stream(decompressed_chunks(cast(IO[bytes], raw), compression))
    with cut_errors(raw):
        if stream.peek(512)[257:262] == b"ustar":
            yield from _members(stream, counts)
        elif not file.size_bytes or name.lower().endswith(ARCHIVES):
            raise CutError("it is empty" if not file.size_bytes else "it does not begin as a tar archive")
        else:
            for number, line in enumerate(split_lines(iter(lambda: stream.read(CHUNK_BYTES), b"")), 1):
                yield "", number, line
        while stream.read(CHUNK_BYTES):  # to the checksum of the gzip stream
            pass


def _members(stream: Stream, counts: Counter[str]) -> Iterator[tuple[str, int, bytes | TooLong]]:
    for name, _, chunks in tar_members(stream, MEMBERS, counts):
        for number, line in enumerate(split_lines(chunks), 1):
            yield name, number, line
