"""Sample documents: a fraction of them, or an exact number.

In:  documents.
Out: the sampled documents, shard for shard under the same names, in the documents' order.

The sample is the documents with the smallest hashes, so it does not depend on the shards, and a smaller sample is part
of a larger one with the same seed. `count` takes two phases: each shard writes its smallest hashes to
`.marin/smallest`, one process that holds `count` numbers finds the smallest of all, then each shard writes its
documents.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from marin_assets.documents import (
    BadRow,
    Document,
    document_files,
    document_shards,
    read_documents,
    read_rows,
    write_documents,
)
from marin_assets.documents.position import ID, POSITIONS, SampleError, key_of, position
from marin_assets.documents.rows import write_rows
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.paths import join

SMALLEST = ".marin/smallest"
NOT_SAMPLED = "rejected_not_sampled"
Order = tuple[int, int, int]
"""(hash of the key, hash of the id, row): the order of sampling. Documents with the same id differ by row."""


@dataclass(frozen=True, kw_only=True)
class SampleDocumentsConfig:
    documents_path: str
    """Documents to sample."""
    output_path: str = THIS_OUTPUT_PATH
    fraction: float | None = versioned(None)
    """The share of the keys to sample. Pass this or `count`."""
    count: int | None = versioned(None)
    """The number of documents to sample. Pass this or `fraction`."""
    key: str = versioned(ID)
    """The key to hash: "id", "page" (metadata["page"], or the id), or another key of the metadata."""
    seed: int = versioned(0)

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Config of a shard."""

    key: str
    seed: int
    fraction: float = 1.0
    count: int = 0
    take: tuple[int, ...] = ()
    """For each input, how many of its smallest hashes are among the smallest of all."""
    smallest: tuple[str, ...] = ()
    """For each input, the file of its smallest hashes."""

    def position(self, document: Document) -> int:
        return position(key_of(document, self.key), f"sample/{self.seed}/")


def sample_documents(config: SampleDocumentsConfig) -> Counts:
    """Write a sample. Returns documents, kept, rejected, rejected_not_sampled, bytes_in, bytes_kept.

    Raises SampleError for an invalid fraction or count, and for fewer documents than `count`.
    """
    _check(config)
    documents = document_files(config.documents_path)
    sampling = Sampling(key=config.key, seed=config.seed)
    if config.fraction is not None:
        sampling = dataclasses.replace(sampling, fraction=config.fraction)
        shards = document_shards(documents, config.output_path, sampling)
        return {**map_shards(sample_share, shards, output_path=config.output_path), **documents.counts}
    sampling = dataclasses.replace(sampling, count=config.count or 0)
    first = document_shards(documents, join(config.output_path, SMALLEST), sampling)
    counted = map_shards(find_smallest, first, output_path=config.output_path)
    if counted["documents"] < sampling.count:
        raise SampleError(
            f"{config.documents_path!r} has {counted['documents']} documents, expected at least "
            f"count={sampling.count}. Lower the count."
        )
    second = _with_shares(document_shards(documents, config.output_path, sampling), first, sampling)
    return {**map_shards(take_smallest, second, output_path=config.output_path), **documents.counts}


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
    sampling: Sampling = shard.config
    limit = sampling.fraction * POSITIONS
    return _write(shard, lambda file, row, document: sampling.position(document) < limit)


def find_smallest(shard: FileShard) -> Counts:
    """Write the `count` smallest orders of each file, in memory of `count` numbers."""
    sampling: Sampling = shard.config
    documents = 0
    for file, output in zip(shard.inputs, shard.outputs, strict=True):
        counted = Counter[str]()
        smallest = heapq.nsmallest(sampling.count, _orders(file.path, sampling, counted))
        write_rows(output, ({"order": order} for order in smallest), replace=False)
        documents += counted["documents"]
    return {"documents": documents}


def _orders(path: str, sampling: Sampling, counted: Counter[str]) -> Iterator[Order]:
    for row, document in enumerate(read_documents(path)):
        counted["documents"] += 1
        yield sampling.position(document), position(document.id, f"sample/{sampling.seed}/"), row


def _with_shares(shards: Sequence[FileShard], first: Sequence[FileShard], sampling: Sampling) -> list[FileShard]:
    """Set how many of each file's smallest orders to take. They are sorted, so a number identifies them."""
    paths = [path for shard in first for path in shard.outputs]
    of_all = heapq.nsmallest(sampling.count, ((*order[:2], i) for i, path in enumerate(paths) for order in _read(path)))
    taken = Counter(i for *_, i in of_all)
    configured, start = [], 0
    for shard in shards:
        numbers = range(start, start + len(shard.inputs))
        start += len(shard.inputs)
        config = dataclasses.replace(
            sampling, take=tuple(taken[i] for i in numbers), smallest=tuple(paths[i] for i in numbers)
        )
        configured.append(dataclasses.replace(shard, config=config))
    return configured


def _read(path: str) -> Iterator[Order]:
    for number, row in read_rows(path):
        if isinstance(row, BadRow):
            raise SampleError(f"{path!r} line {number} is not the order of a document ({row.detail}). Remove the file.")
        yield tuple(row["order"])  # type: ignore[misc]


def take_smallest(shard: FileShard) -> Counts:
    sampling: Sampling = shard.config
    rows = [
        {order[2] for order, _ in zip(_read(path), range(take), strict=False)}
        for path, take in zip(sampling.smallest, sampling.take, strict=True)
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
