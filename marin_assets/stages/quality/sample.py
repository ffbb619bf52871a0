"""Sample labelled texts: the texts with the smallest hashes, each text once, in flat memory.

The sample depends neither on the order of the documents nor on their shards.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import Document, page_of, read_documents, read_rows, write_rows
from marin_assets.documents.position import VALIDATION, split_of
from marin_assets.inference.fasttext_model import one_line
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.storage.files import list_files


@dataclass(frozen=True, kw_only=True)
class SampleConfig:
    """Config of a shard of `sample_shard`."""

    max_examples: int
    lowercase: bool
    seed: int


@dataclass(frozen=True, order=True)
class Example:
    rank: str
    """Hash of the text, in hex."""
    id: str
    label: str
    line: str
    held_out: bool


def sample_shard(shard: FileShard) -> Mapping[str, int]:
    """Write the texts of each file with the smallest hashes, as lines for fastText."""
    read = 0
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        chosen = Smallest(shard.config.max_examples)
        for document in read_documents(file.path):
            read += 1
            line = one_line(document.text, lowercase=shard.config.lowercase)
            rank = hashlib.sha256(f"{shard.config.seed}\n{line}".encode()).hexdigest()
            chosen.offer(rank, document.id, {"page": page_of(document), "line": line})
        write_rows(target, ({"rank": rank, "id": id, **row} for rank, id, row in chosen.rows()), replace=False)
    return {"examples_read": read}


class Smallest:
    """Keep the rows with the smallest ranks, in flat memory; of equal ranks, the row with the smallest id."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._rows: dict[str, tuple[str, dict[str, Any]]] = {}
        self._largest: list[tuple[int, str]] = []

    def offer(self, rank: str, id: str, row: dict[str, Any]) -> None:
        if rank in self._rows:
            self._rows[rank] = min(self._rows[rank], (id, row), key=lambda id_and_row: id_and_row[0])
        elif len(self._rows) < self._count or -int(rank, 16) > self._largest[0][0]:
            self._rows[rank] = (id, row)
            heapq.heappush(self._largest, (-int(rank, 16), rank))
            if len(self._rows) > self._count:
                del self._rows[heapq.heappop(self._largest)[1]]

    def rows(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for rank, (id, row) in sorted(self._rows.items()):
            yield rank, id, row


def sampled_examples(folders: Mapping[str, str], max_examples: int, validation_fraction: float) -> Iterator[Example]:
    """Yield the examples from the files of `sample_shard`, one folder a label, without texts that have two labels."""
    chosen: dict[str, list[Example]] = {}
    for label, folder in folders.items():
        smallest = Smallest(max_examples)
        for path in list_files(folder):
            for _, row in read_rows(path):
                assert isinstance(row, dict), path  # written by sample_shard
                smallest.offer(row["rank"], row["id"], row)
        for rank, id, row in smallest.rows():
            held_out = split_of(Document(id=row["page"], text=""), validation_fraction) == VALIDATION
            chosen.setdefault(rank, []).append(Example(rank, id, label, row["line"], held_out))
    yield from (examples[0] for examples in chosen.values() if len(examples) == 1)
