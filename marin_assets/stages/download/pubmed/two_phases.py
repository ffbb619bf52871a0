"""Two phases: each file becomes hidden parts and its numbers; then each part becomes an output file of valid texts.

The parts wait until the numbers of all files are known. All that a phase writes is a function of its input, so a stage
that was killed continues with the files and the parts that are not finished.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

from marin_assets.documents import Document, read_documents, shard_name, write_documents
from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.crawl.shards import reject
from marin_assets.stages.download.pubmed.latest import DELETED, SUPERSEDED, Numbers, Owners, read_numbers
from marin_assets.stages.download.warc.record import CrawlError
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import (
    REQUESTS_AT_ONCE,
    StoredFile,
    exists,
    read_bytes,
    remove,
    remove_folder,
    stored_file,
    write_bytes,
)
from marin_resources.storage.paths import join

HIDDEN = ".marin/pubmed"
STATES = {SUPERSEDED: "superseded", DELETED: "deleted"}
NO_TEXTS = {"documents": 0, "bytes": 0, "rejected": 0, "rejected_superseded": 0, "rejected_deleted": 0}
DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, kw_only=True)
class SourceShard:
    """One file, whose texts become parts in a folder, and whose numbers a file."""

    file: CrawlFile
    md5: StoredFile | None
    """The file with its digest, in a store."""
    folder: str
    output: str
    config: Any

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        return tuple(file for file in (self.file.stored, self.md5) if file is not None)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)


@dataclass(frozen=True, kw_only=True)
class PartShard:
    """One part, which becomes an output file of its valid texts."""

    part: StoredFile
    states: StoredFile
    first_row: int
    """The row of `states` that the first text of the part has."""
    output: str

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        return (self.part, self.states)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)


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


def source_shards(files: Sequence[CrawlFile], config: Any) -> list[SourceShard]:
    """The first phase's shards, in the order of publication."""
    hidden = join(config.output_path, HIDDEN)
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        digests = list(pool.map(_digest_beside, files))
    return [
        SourceShard(
            file=file, md5=md5, folder=join(hidden, f"{n:05}"), output=join(hidden, f"{n:05}.numbers"), config=config
        )
        for n, (file, md5) in enumerate(zip(files, digests, strict=True))
    ]


def _digest_beside(file: CrawlFile) -> StoredFile | None:
    if file.stored is not None:
        with suppress(FileNotFoundError):
            return stored_file(f"{file.path}.md5")
    return None


def write_parts(shard: SourceShard, texts: Iterator[tuple[int, int, Document | None]], deleted: Sequence[int]) -> None:
    """Write the parts of one file, and its numbers at the end.

    `texts`: number, version, and the document, None for a text without one. `deleted` is read when they have ended.
    """
    with suppress(FileNotFoundError):
        remove_folder(shard.folder)  # of a worker that was lost
    numbers = Numbers()
    documents = _documents(texts, numbers)
    rows = 0
    for document in documents:
        part = join(shard.folder, f"{len(numbers.parts):05}.jsonl.zst")
        documents_of_part = _part(chain([document], documents), shard.config.shard_bytes)
        size = write_documents(part, documents_of_part, replace=False)
        rows += size
        numbers.parts.append(size)
    numbers.deleted.extend(deleted)
    numbers.write(shard.output)


def _documents(texts: Iterator[tuple[int, int, Document | None]], numbers: Numbers) -> Iterator[Document]:
    row = 0
    for number, version, document in texts:
        numbers.add(number, version, -1 if document is None else row)
        if document is not None:
            row += 1
            yield document


def _part(documents: Iterator[Document], most_bytes: int) -> Iterator[Document]:
    size = 0
    for document in documents:
        yield document
        size += len(document.text.encode())
        if size >= most_bytes:
            return


def write_valid(shards: Sequence[SourceShard], config: Any) -> Counter[str]:
    """The second phase: write the output files, and remove all that is hidden. Returns the counts of NO_TEXTS."""
    parts = _part_shards(shards, config)
    counts = Counter({**NO_TEXTS, **map_shards(write_part, parts, output_path=config.output_path)})
    for shard in shards:
        remove(shard.output)  # first, so a stage that is killed here reads again and does not miss parts
    with suppress(FileNotFoundError):
        remove_folder(join(config.output_path, HIDDEN))  # in a bucket it does not exist without texts
    return counts


def _part_shards(shards: Sequence[SourceShard], config: Any) -> list[PartShard]:
    owners = Owners([shard.output for shard in shards])
    parts: list[tuple[str, str, int]] = []
    for place, shard in enumerate(shards):
        numbers = read_numbers(shard.output)
        states = owners.states(place, numbers)
        path = f"{shard.folder}.{hashlib.sha256(states).hexdigest()[:16]}.states"
        if numbers.parts and not exists(path):
            write_bytes(path, states)
        firsts = accumulate(numbers.parts, initial=0)
        parts += [(join(shard.folder, f"{n:05}.jsonl.zst"), path, row)
                  for n, row in zip(range(len(numbers.parts)), firsts, strict=False)]  # fmt: skip
    return [
        PartShard(
            part=stored_file(part),
            states=stored_file(states_path),
            first_row=row,
            output=join(config.output_path, shard_name(index, len(parts))),
        )
        for index, (part, states_path, row) in enumerate(parts)
    ]


def write_part(shard: PartShard) -> Counts:
    """Write the valid texts of one part. Returns the counts of NO_TEXTS."""
    counts = Counter(NO_TEXTS)
    write_documents(shard.output, _valid(shard, counts), replace=False)
    return dict(counts)


def _valid(shard: PartShard, counts: Counter[str]) -> Iterator[Document]:
    states = read_bytes(shard.states.path)
    for row, document in enumerate(read_documents(shard.part.path), shard.first_row):
        if reason := STATES.get(states[row]):
            reject(counts, reason)
            continue
        counts["documents"] += 1
        counts["bytes"] += len(document.text.encode())
        yield document


def require_texts(counts: Mapping[str, int | float], config: Any, *, texts: str, expected: str) -> None:
    """Raise CrawlError if no text is valid. `texts` is the count of all of them."""
    if not counts["documents"]:
        reasons = ", ".join(
            f"{count:,} {key.removeprefix('rejected_')}"
            for key, count in counts.items()
            if key.startswith("rejected_") and count
        )
        raise CrawlError(
            f"None of the {counts[texts]:,} {texts} of {config.input_path!r} is a document "
            f"({reasons or 'none exist'}), expected {expected}. Correct input_path."
        )
