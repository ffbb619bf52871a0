"""Two phases: each file becomes hidden parts and a file of facts; then each part becomes an output file of valid texts.

The parts wait until the facts of all files are known. All that a phase writes is a function of its input, so a stage
that was killed continues with the files and the parts that are not finished.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

from marin_assets.documents import Document, read_documents, shard_name, write_documents
from marin_assets.stages.download.crawl.crawl_file import CrawlFileShard
from marin_assets.stages.download.crawl.damage import reject
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import (
    StoredFile,
    exists,
    read_bytes,
    remove,
    remove_folder,
    stored_file,
    write_bytes,
)
from marin_resources.storage.paths import join


@dataclass(frozen=True, kw_only=True)
class SourceShard(CrawlFileShard):
    """One file, whose texts become parts in a folder, and whose facts the output."""

    folder: str
    config: Any


@dataclass(frozen=True, kw_only=True)
class PartShard:
    """One part, which becomes an output file of its valid texts."""

    part: StoredFile
    states: StoredFile
    """For each row of the file 0, or from 1 on the number of its reason."""
    first_row: int
    """The row of `states` that the first text of the part has."""
    output: str
    texts: str
    """The name of their count."""
    reasons: tuple[str, ...]

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        return (self.part, self.states)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output,)


def write_parts(shard: SourceShard, texts: Iterator[Document]) -> list[int]:
    """Write the parts of one file. Returns the number of rows of each."""
    remove_if_exists(shard.folder)  # of a worker that was lost
    rows: list[int] = []
    for text in texts:
        part = join(shard.folder, f"{len(rows):05}.jsonl.zst")
        rows.append(write_documents(part, _part(chain([text], texts), shard.config.shard_bytes), replace=False))
    return rows


def _part(texts: Iterator[Document], most_bytes: int) -> Iterator[Document]:
    size = 0
    for text in texts:
        yield text
        size += len(text.text.encode())
        if size >= most_bytes:
            return


def write_valid(
    shards: Sequence[SourceShard],
    states: Iterable[tuple[Sequence[int], bytes]],
    output_path: str,
    *,
    texts: str,
    reasons: tuple[str, ...],
) -> Counts:
    """The second phase: write the output files, and remove all that is hidden.

    `states` has for each shard the rows of its parts, and the state of each row, as PartShard has it. Returns the
    counts of `write_part`.
    """
    parts: list[tuple[str, str, int]] = []
    for shard, (rows, of_rows) in zip(shards, states, strict=True):
        path = f"{shard.folder}.{hashlib.sha256(of_rows).hexdigest()[:16]}.states"
        if rows and not exists(path):
            write_bytes(path, of_rows)
        firsts = list(accumulate(rows, initial=0))[:-1]
        parts += [(join(shard.folder, f"{n:05}.jsonl.zst"), path, row) for n, row in enumerate(firsts)]
    part_shards = [
        PartShard(
            part=stored_file(part),
            states=stored_file(path),
            first_row=row,
            output=join(output_path, shard_name(index, len(parts))),
            texts=texts,
            reasons=reasons,
        )
        for index, (part, path, row) in enumerate(parts)
    ]
    counts = _no_texts(texts, reasons) | map_shards(write_part, part_shards, output_path=output_path)
    remove_hidden(shards)
    return counts


def _no_texts(texts: str, reasons: Sequence[str]) -> Counts:
    return dict.fromkeys((texts, "bytes", "rejected", *(f"rejected_{reason}" for reason in reasons)), 0)


def write_part(shard: PartShard) -> Counts:
    """Write the valid texts of one part. Returns their number, bytes, rejected and each rejected_<reason>."""
    counts = Counter(_no_texts(shard.texts, shard.reasons))
    write_documents(shard.output, _valid(shard, counts), replace=False)
    return dict(counts)


def _valid(shard: PartShard, counts: Counter[str]) -> Iterator[Document]:
    states = read_bytes(shard.states.path)
    for row, text in enumerate(read_documents(shard.part.path), shard.first_row):
        if states[row]:
            reject(counts, shard.reasons[states[row] - 1])
            continue
        counts[shard.texts] += 1
        counts["bytes"] += len(text.text.encode())
        yield text


def remove_hidden(shards: Sequence[SourceShard]) -> None:
    """Remove the hidden folder of a first phase."""
    for shard in shards:
        remove(shard.output)  # first, so a stage that is killed here reads again and does not miss parts
    remove_if_exists(shards[0].folder.rpartition("/")[0])


def remove_if_exists(folder: str) -> None:
    """In a bucket a folder without files does not exist."""
    with suppress(FileNotFoundError):
        remove_folder(folder)
