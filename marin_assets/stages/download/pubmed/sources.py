"""The files of PubMed and PMC in the order of their publication, each with the digest beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import Document
from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.crawl.two_phases import SourceShard, write_parts, write_valid
from marin_assets.stages.download.pubmed.latest import REASONS, Numbers, Owners, read_numbers
from marin_resources.ray_tpu.shards.map_shards import Counts
from marin_resources.storage.files import REQUESTS_AT_ONCE, StoredFile, stored_file
from marin_resources.storage.paths import join

HIDDEN = ".marin/pubmed"
DIGITS = re.compile(r"(\d+)")
Text = tuple[int, int, Document | None]
"""Number, version, and the document; None for a text without one."""


@dataclass(frozen=True, kw_only=True)
class DigestedShard(SourceShard):
    """One file, whose texts become parts in a folder, and whose numbers the output."""

    md5: StoredFile | None
    """The file with its digest, in a store."""

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        return tuple(file for file in (self.file.stored, self.md5) if file is not None)


def published_order(files: Sequence[CrawlFile]) -> list[CrawlFile]:
    """Files in the order of publication: by the last date in a name, then by the name, whose digits are numbers.

    Folders do not count, unless names are equal: `updatefiles` continues the numbers of `baseline`.
    """

    def key(file: CrawlFile) -> tuple[str, list[tuple[int, str]], str]:
        name = file.name.rpartition("/")[2]
        dates = re.findall(r"\d{4}-\d{2}-\d{2}", name)
        parts = [(int(part), "") if part.isdecimal() else (-1, part) for part in DIGITS.split(name)]
        return (dates[-1] if dates else ""), parts, file.name

    return sorted(files, key=key)


def source_shards(files: Sequence[CrawlFile], config: Any) -> list[DigestedShard]:
    """The first phase's shards, in the order of publication."""
    hidden = join(config.output_path, HIDDEN)
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        digests = list(pool.map(_digest_beside, files))
    return [
        DigestedShard(
            file=file, md5=md5, folder=join(hidden, f"{n:05}"), output=join(hidden, f"{n:05}.numbers"), config=config
        )
        for n, (file, md5) in enumerate(zip(files, digests, strict=True))
    ]


def _digest_beside(file: CrawlFile) -> StoredFile | None:
    if file.stored is not None:
        with suppress(FileNotFoundError):
            return stored_file(f"{file.path}.md5")
    return None


def write_texts(shard: DigestedShard, texts: Iterator[Text], deleted: Sequence[int]) -> None:
    """Write the parts of one file, and its numbers at the end. `deleted` is read when the texts have ended."""
    numbers = Numbers()
    numbers.parts.extend(write_parts(shard, _documents(texts, numbers)))
    numbers.deleted.extend(deleted)
    numbers.write(shard.output)


def _documents(texts: Iterator[Text], numbers: Numbers) -> Iterator[Document]:
    row = 0
    for number, version, document in texts:
        numbers.add(number, version, -1 if document is None else row)
        if document is not None:
            row += 1
            yield document


def write_latest(shards: Sequence[DigestedShard], output_path: str) -> Counts:
    """Write the documents that are the latest of their numbers. Returns documents, bytes and rejected ones."""
    owners = Owners([shard.output for shard in shards])

    def states() -> Iterator[tuple[Sequence[int], bytes]]:
        for place, shard in enumerate(shards):
            numbers = read_numbers(shard.output)
            yield numbers.parts, owners.states(place, numbers)

    return write_valid(shards, states(), output_path, texts="documents", reasons=REASONS)
