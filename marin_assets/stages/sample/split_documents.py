"""Split documents into named parts, for example for training, validation and test.

In:  documents.
Out: `<output>/<part>/…`, each part with shards of the same names as the documents'.

A hash of the page (or of another key) decides, so the pieces of one page stay together, and an added document moves no
other. Parts are ranges of the hash, in the given order: ("validation", 0.05) as the first part is the side that
`tokenize` and `train_tokenizer` keep for validation with validation_fraction=0.05.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from marin_assets.documents import Document, document_files, document_shards, read_documents, write_documents
from marin_assets.documents.position import PAGE, POSITIONS, SampleError, key_of, position
from marin_assets.documents.shards import output_name
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.paths import join

PART = re.compile(r"[A-Za-z0-9_-]+")
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class SplitDocumentsConfig:
    documents_path: str
    """Documents to split."""
    output_path: str = THIS_OUTPUT_PATH
    parts: Sequence[tuple[str, float]] = versioned((("validation", 0.05), ("train", 0.95)))
    """(name, share of the keys) of each part, in order; the shares add up to 1."""
    key: str = versioned(PAGE)
    """The key to hash: "page" (metadata["page"], or the id), "id", or another key of the metadata."""
    seed: int | None = versioned(None)
    """Seed of the hash. None gives the split that `tokenize` uses."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class Split:
    """Config of a shard of `split_shard`."""

    parts: tuple[tuple[str, float], ...]
    key: str
    seed: int | None

    def part_of(self, document: Document) -> str:
        salt = "" if self.seed is None else f"split/{self.seed}/"
        at = position(key_of(document, self.key), salt)
        end = 0.0
        for name, fraction in self.parts[:-1]:
            end += fraction
            if at < end * POSITIONS:
                return name
        return self.parts[-1][0]


def split_documents(config: SplitDocumentsConfig) -> Counts:
    """Write each part's documents. Returns documents, documents_<part>, bytes, bytes_<part>, documents_unaccounted (0).

    Raises SampleError for invalid parts, or for a document without the key (as a ShardError).
    """
    split = Split(parts=tuple(map(tuple, config.parts)), key=config.key, seed=config.seed)  # type: ignore[arg-type]
    check_parts(split.parts)
    documents = document_files(config.documents_path)
    shards = [
        dataclasses.replace(
            shard,
            outputs=tuple(
                join(config.output_path, part, output_name(file, ".jsonl.zst"))
                for file in shard.inputs
                for part, _ in split.parts
            ),
        )
        for shard in document_shards(documents, config.output_path, split)
    ]
    counts = map_shards(split_shard, shards, output_path=config.output_path)
    written = sum(counts[f"documents_{part}"] for part, _ in split.parts)
    return {**counts, "documents_unaccounted": counts["documents"] - written, **documents.counts}


def _check(config: SplitDocumentsConfig) -> None:
    check_parts(config.parts)


def check_parts(parts: Sequence[tuple[str, float]]) -> None:
    """Raise SampleError for invalid names of folders, and for shares that do not add up to 1."""
    names = [name for name, _ in parts]
    if len(set(names)) < len(names) or not all(isinstance(name, str) and PART.fullmatch(name) for name in names):
        raise SampleError(f"The parts are named {names!r}, expected letters, digits, '_' and '-', each name once.")
    if not all(0 < fraction <= 1 for _, fraction in parts) or abs(sum(f for _, f in parts) - 1) > SUM_TOLERANCE:
        raise SampleError(
            f"The parts have the shares {dict(parts)!r}, expected numbers above 0 that add up to 1. To leave out "
            "documents, use sample_documents."
        )


def split_shard(shard: FileShard) -> Counts:
    """Write each part of a shard. Each part reads the shard again, so one file is written at a time, in flat memory."""
    split: Split = shard.config
    names = [name for name, _ in split.parts]
    totals = [f"{unit}_{name}" for unit in ("documents", "bytes") for name in names]
    counts: Counter[str] = Counter(dict.fromkeys(["documents", "bytes", *totals], 0))
    outputs = iter(shard.outputs)
    for file in shard.inputs:
        for number, name in enumerate(names):
            documents = _counted(file.path, counts) if number == 0 else read_documents(file.path)
            write_documents(next(outputs), _part(documents, split, name, counts), replace=False)
    return dict(counts)


def _counted(path: str, counts: Counter[str]) -> Iterator[Document]:
    for document in read_documents(path):
        counts.update(documents=1, bytes=len(document.text.encode()))
        yield document


def _part(documents: Iterator[Document], split: Split, name: str, counts: Counter[str]) -> Iterator[Document]:
    for document in documents:
        if split.part_of(document) == name:
            counts.update({f"documents_{name}": 1, f"bytes_{name}": len(document.text.encode())})
            yield document
