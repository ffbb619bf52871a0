"""A sample of documents: a share of them, or exactly so many.

In:  documents.
Out: the sampled documents, shard for shard under the same names, in the documents' order.

Those with the smallest hash are taken, so the sample does not depend on the shards, and a smaller one is a part of a
larger one with the same seed. `count` is two phases: each shard writes its smallest hashes to `.marin/smallest`, the
smallest of all are found by one process that holds `count` numbers, then each shard writes its documents.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from marin_assets.documents import BadRow, Document, document_shards, read_documents, read_rows, write_documents
from marin_assets.documents.position import ID, POSITIONS, SampleError, key_of, position
from marin_assets.documents.rows import write_rows
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.paths import join

SMALLEST = ".marin/smallest"
NOT_SAMPLED = "rejected_not_sampled"
Order = tuple[int, int, int]
"""(hash of the key, hash of the id, row): which document is taken first. Twins of one id differ by their row."""


@dataclass(frozen=True, kw_only=True)
class SampleDocumentsConfig:
    documents_path: str
    """Documents to sample."""
    output_path: str = THIS_OUTPUT_PATH
    fraction: float | None = versioned(None)
    """The share of the names that is taken; this or `count`."""
    count: int | None = versioned(None)
    """How many documents are taken; this or `fraction`."""
    key: str = versioned(ID)
    """Whose hash decides: "id", "page" (metadata["page"], or the id), or another key of the metadata."""
    seed: int = versioned(0)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What one group of shards is asked."""

    key: str
    seed: int
    fraction: float = 1.0
    count: int = 0
    take: tuple[int, ...] = ()
    """Of each input's smallest hashes, how many are among the smallest of all."""
    smallest: tuple[str, ...] = ()
    """For each input, the file of its smallest hashes."""

    def position(self, document: Document) -> int:
        return position(key_of(document, self.key), f"sample/{self.seed}/")


def sample_documents(config: SampleDocumentsConfig) -> Counts:
    """Write a sample. Returns documents, kept, rejected, rejected_not_sampled, bytes_in, bytes_kept.

    Raises SampleError for a fraction or count that is none, and if there are fewer documents than `count`.
    """
    _check(config)
    asked = Sampling(key=config.key, seed=config.seed)
    if config.fraction is not None:
        asked = dataclasses.replace(asked, fraction=config.fraction)
        shards = document_shards(config.documents_path, config.output_path, asked)
        return map_shards(sample_share, shards, output_path=config.output_path)
    asked = dataclasses.replace(asked, count=config.count or 0)
    first = document_shards(config.documents_path, join(config.output_path, SMALLEST), asked)
    found = map_shards(find_smallest, first, output_path=config.output_path)
    if found["documents"] < asked.count:
        raise SampleError(
            f"There are {found['documents']} documents below {config.documents_path!r}, expected at least "
            f"count={asked.count}. Ask for fewer."
        )
    second = document_shards(config.documents_path, config.output_path, asked)
    return map_shards(take_smallest, _with_shares(second, first, asked), output_path=config.output_path)


def _check(config: SampleDocumentsConfig) -> None:
    if (config.fraction is None) == (config.count is None):
        raise SampleError(
            f"A sample has fraction={config.fraction!r} and count={config.count!r}, expected one of them. Pass one."
        )
    if config.fraction is not None and not 0 < config.fraction <= 1:
        raise SampleError(f"A sample has fraction={config.fraction!r}, expected a number above 0 and at most 1.")
    if config.count is not None and config.count < 1:
        raise SampleError(f"A sample has count={config.count!r}, expected at least 1.")


def sample_share(shard: FileShard) -> Counts:
    asked: Sampling = shard.config
    limit = asked.fraction * POSITIONS
    return _write(shard, lambda file, row, document: asked.position(document) < limit)


def find_smallest(shard: FileShard) -> Counts:
    """Write the `count` smallest orders of each file. Memory is that of `count` numbers."""
    asked: Sampling = shard.config
    documents = 0
    for file, output in zip(shard.inputs, shard.outputs, strict=True):
        counted = Counter[str]()
        smallest = heapq.nsmallest(asked.count, _orders(file.path, asked, counted))
        write_rows(output, ({"order": order} for order in smallest), replace=False)
        documents += counted["documents"]
    return {"documents": documents}


def _orders(path: str, asked: Sampling, counted: Counter[str]) -> Iterator[Order]:
    for row, document in enumerate(read_documents(path)):
        counted["documents"] += 1
        yield asked.position(document), position(document.id, f"sample/{asked.seed}/"), row


def _with_shares(shards: Sequence[FileShard], found: Sequence[FileShard], asked: Sampling) -> list[FileShard]:
    """Each group told how many of its files' smallest are taken: they are sorted, so a number says which."""
    paths = [path for shard in found for path in shard.outputs]
    of_all = heapq.nsmallest(asked.count, ((*order[:2], i) for i, path in enumerate(paths) for order in _read(path)))
    taken = Counter(i for *_, i in of_all)
    told, start = [], 0
    for shard in shards:
        numbers = range(start, start + len(shard.inputs))
        start += len(shard.inputs)
        config = dataclasses.replace(
            asked, take=tuple(taken[i] for i in numbers), smallest=tuple(paths[i] for i in numbers)
        )
        told.append(dataclasses.replace(shard, config=config))
    return told


def _read(path: str) -> Iterator[Order]:
    for number, row in read_rows(path):
        if isinstance(row, BadRow):
            raise SampleError(f"{path!r} line {number} is no order of a document ({row.detail}). Remove the file.")
        yield tuple(row["order"])  # type: ignore[misc]


def take_smallest(shard: FileShard) -> Counts:
    asked: Sampling = shard.config
    rows = [
        {order[2] for order, _ in zip(_read(path), range(take), strict=False)}
        for path, take in zip(asked.smallest, asked.take, strict=True)
    ]
    return _write(shard, lambda file, row, document: row in rows[file])


def _write(shard: FileShard, is_taken: Callable[[int, int, Document], bool]) -> Counts:
    totals = ("documents", "kept", "rejected", NOT_SAMPLED, "bytes_in", "bytes_kept")
    counts: Counter[str] = Counter(dict.fromkeys(totals, 0))
    for number, (file, output) in enumerate(zip(shard.inputs, shard.outputs, strict=True)):
        write_documents(output, _taken(number, file.path, is_taken, counts), replace=False)
    return dict(counts)


def _taken(
    file: int, path: str, is_taken: Callable[[int, int, Document], bool], counts: Counter[str]
) -> Iterator[Document]:
    for row, document in enumerate(read_documents(path)):
        size = len(document.text.encode())
        counts.update(documents=1, bytes_in=size)
        if is_taken(file, row, document):
            counts.update(kept=1, bytes_kept=size)
            yield document
        else:
            counts.update({"rejected": 1, NOT_SAMPLED: 1})
