"""The files of an XML dump: its parts, their indexes, and the SHA-1 of each.

enwiki-20240520-pages-articles-multistream1.xml-p1p41242.bz2
enwiki-20240520-pages-articles-multistream-index1.txt-p1p41242.bz2    546:10:AccessibleComputing
enwiki-20240520-sha1sums.txt                                          6c8f…  enwiki-20240520-…
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, cast

from marin_assets.documents.jsonl.lines import TooLong, decompressed_chunks, require_expansion, split_lines
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.crawl_file import CrawlFile, CrawlFileShard
from marin_assets.stages.download.crawl.files import content_of, crawl_files
from marin_assets.stages.download.warc.members import WINDOW_BYTES, RawFile
from marin_assets.stages.download.warc.record import CrawlError
from marin_resources.ray_tpu.shards.map_shards import Counts
from marin_resources.storage.files import read_json, write_json
from marin_resources.types.errors import MarinError

DUMP = re.compile(r"\.xml(-[^/]*)?(\.bz2)?$", re.IGNORECASE)
INDEX = re.compile(r"-index\d*\.txt(-[^/]*)?\.bz2$", re.IGNORECASE)
SUMS = "sha1sums.txt"
SUFFIXES = (".xml", ".bz2", SUMS)
SUM_LINE = re.compile(r"([0-9a-f]{40}) [ *](\S.*)")
INDEX_LINE = re.compile(rb"(\d{1,18}):\d{1,18}:")


@dataclass(frozen=True, kw_only=True)
class DumpFiles:
    dumps: tuple[CrawlFile, ...]
    indexes: Mapping[str, CrawlFile]
    """Name of a dump -> its index."""
    sums: Mapping[str, str]
    """Name without folders -> SHA-1."""
    ignored: int


@dataclass(frozen=True, kw_only=True)
class FileFacts(CrawlFileShard):
    """A file of which a fact is written: its SHA-1, or the streams that an index has."""

    max_connections: int


def dump_files(path: str, base_url: str, checksums_path: str | None, max_connections: int) -> DumpFiles:
    """Return the files of a dump. Raises CrawlError for none, and for two forms of the same one."""
    expected = ".xml, .xml.bz2 or .xml-p1p41242.bz2"
    files, ignored = crawl_files(
        path,
        base_url,
        max_connections=max_connections,
        kind="dump",
        suffixes=SUFFIXES,
        expected=expected,
    )
    dumps = [file for file in files if DUMP.search(file.name)]
    indexes = {file.name: file for file in files if INDEX.search(file.name)}
    sums = [file for file in files if file.name.lower().endswith(SUMS)]
    if not dumps:
        raise CrawlError(
            f"No dump in XML exists below {path!r}: it has {files[0].name!r}. Expected names that end with {expected}. "
            "Correct the path."
        )
    forms: dict[str, str] = {}
    for file in dumps:
        other = forms.setdefault(re.sub("-multistream|[.]bz2$", "", file.name), file.name)
        if other != file.name:
            raise CrawlError(
                f"The files {other!r} and {file.name!r} have the same pages. Leave one of them out of {path!r}."
            )
    if checksums_path is None and len(sums) > 1:
        raise CrawlError(f"{path!r} has {len(sums)} files {SUMS!r}, expected one. Pass one as checksums_path.")
    place = checksums_path or (sums[0].path if sums else None)
    own = {name: indexes[index] for name in (file.name for file in dumps) if (index := index_of(name)) in indexes}
    return DumpFiles(
        dumps=tuple(dumps),
        indexes=own,
        sums={} if place is None else _sums(place, max_connections),
        ignored=ignored + len(files) - len(dumps) - len(own) - len(sums),
    )


def index_of(name: str) -> str:
    """The name of the index of a dump; of a dump that has none, its own."""
    return re.sub(r"-multistream(\d*)\.xml", r"-multistream-index\1.txt", name)


def _sums(path: str, max_connections: int) -> dict[str, str]:
    lines = content_of(path, max_connections, noun="file of checksums").decode("utf-8", "replace").splitlines()
    matches = [SUM_LINE.fullmatch(line.strip()) for line in lines if line.strip()]
    if not matches or None in matches:
        raise CrawlError(
            f"The file of checksums {path!r} has no lines of a SHA-1 and a name, as Wikimedia's sha1sums.txt. Correct "
            "checksums_path."
        )
    return {match[2].rpartition("/")[2]: match[1] for match in matches if match}


def write_sha1(shard: FileFacts) -> Counts:
    """Write the SHA-1 of a file, and what its server counted."""
    digest, offset, counts = hashlib.sha1(usedforsecurity=False), 0, Counter[str]()
    with opened(shard.file, counts, max_connections=shard.max_connections) as file:
        while data := file.read_at(offset, WINDOW_BYTES):
            digest.update(data)
            offset += len(data)
    write_json(shard.output, digest.hexdigest())
    return {**counts, "verified_files": 1}


def require_sums(shards: Sequence[FileFacts], sums: Mapping[str, str]) -> None:
    """Raise CrawlError for a file of another SHA-1 than the checksums have."""
    for shard in shards:
        digest, expected = read_json(shard.output), sums[shard.file.name.rpartition("/")[2]]
        if digest != expected:
            raise CrawlError(
                f"The file {shard.file.name!r} has the SHA-1 {digest!r}, expected {expected!r} by its checksums. "
                "Download it again."
            )


def write_index(shard: FileFacts) -> Counts:
    """Write the streams of an index: [offset, number of pages], in order."""
    counts, streams = Counter[str](), Counter[int]()
    name = shard.file.name
    with opened(shard.file, counts, max_connections=shard.max_connections) as file:
        raw = RawFile(file, 0)

        def text() -> Iterator[bytes]:
            size = 0
            for chunk in decompressed_chunks(cast(IO[bytes], raw), ".bz2"):
                size += len(chunk)
                require_expansion(name, size, raw.tell())
                yield chunk

        try:
            for number, line in enumerate(split_lines(text()), 1):
                match = None if isinstance(line, TooLong) else INDEX_LINE.match(line)
                if match is None:
                    raise CrawlError(
                        f"Line {number} of the index {name!r} is no offset, id and title. Download it again."
                    )
                streams[int(match[1])] += 1
        except (OSError, EOFError, ValueError) as error:
            if raw.error is not None:
                raise raw.error from error
            if isinstance(error, MarinError):
                raise
            raise CrawlError(
                f"The index {name!r} is damaged or cut ({error}). Download it again, or leave it out."
            ) from error
    write_json(shard.output, sorted(streams.items()))
    return {**counts, "indexed_pages": sum(streams.values())}
