"""Sample labelled texts: the texts with the smallest hashes, each text once, in flat memory.

The sample depends neither on the order of the documents nor on their shards.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import (
    Document,
    document_files,
    document_shards,
    page_of,
    read_documents,
    read_rows,
    write_rows,
)
from marin_assets.documents.position import VALIDATION, split_of
from marin_assets.inference.fasttext_model import one_line
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import list_files
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError


class TrainingError(MarinError, ValueError):
    """No classifier can be trained from these examples or parameters."""


SAMPLES = ".marin/examples"
LABEL = re.compile(r"[\w-]+")


@dataclass(frozen=True, kw_only=True)
class SampleConfig:
    """Config of a shard of `sample_shard`."""

    max_examples: int
    seed: int
    lowercase: bool | None = None
    """Whether a line for fastText is lowercased. None: the text as it is, and no line."""
    characters: int | None = None
    """Length of a text as it is, at most."""
    target: str | None = None
    """Key of the number in a document's metadata that is to be learned; None for labels."""


@dataclass(frozen=True, order=True)
class Example:
    rank: str
    """Hash of the text, in hex."""
    id: str
    label: str
    line: str
    held_out: bool
    target: float | None = None
    """The number to be learned, of a regression."""


def sample_shard(shard: FileShard) -> Mapping[str, int]:
    """Write the texts of each file with the smallest hashes. Raises TrainingError for a document without a target."""
    config: SampleConfig = shard.config
    read = 0
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        chosen = Smallest(shard.config.max_examples)
        for document in read_documents(file.path):
            read += 1
            if config.lowercase is None:
                line = document.text[: config.characters]
            else:
                line = one_line(document.text, lowercase=config.lowercase)
            rank = hashlib.sha256(f"{config.seed}\n{line}".encode("utf-8", "surrogatepass")).hexdigest()
            row: dict[str, Any] = {"page": page_of(document), "line": line}
            if config.target is not None:
                row["target"] = _target(document, config.target)
            chosen.offer(rank, document.id, row)
        write_rows(target, ({"rank": rank, "id": id, **row} for rank, id, row in chosen.rows()), replace=False)
    return {"examples_read": read}


def _target(document: Document, key: str) -> float:
    value = document.metadata.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TrainingError(
            f"Document {document.id!r} has {value!r:.60} as {key!r} in its metadata, expected a number to learn."
        )
    return float(value)


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


def sampled_examples(
    examples: Mapping[str, str], output_path: str, config: SampleConfig, validation_fraction: float
) -> tuple[dict[str, int], list[Example]]:
    """Sample the documents of each label, in shards. Return the counts of documents, and the examples by their hashes.

    `examples`: label to documents. The counts are documents, and ignored_files if any exist.
    """
    listed = {label: document_files(path) for label, path in examples.items()}
    folders = {label: join(output_path, SAMPLES, label) for label in examples}
    shards = [shard for label, files in listed.items() for shard in document_shards(files, folders[label], config)]
    read = map_shards(sample_shard, shards, output_path=output_path)["examples_read"]
    ignored = sum(len(files.ignored) for files in listed.values())
    counts = {"documents": int(read), **({"ignored_files": ignored} if ignored else {})}
    return counts, sorted(_with_one_label(folders, config.max_examples, validation_fraction))


def _with_one_label(folders: Mapping[str, str], max_examples: int, validation_fraction: float) -> Iterator[Example]:
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
            example = Example(rank, id, label, row["line"], held_out, row.get("target"))
            chosen.setdefault(rank, []).append(example)
    yield from (examples[0] for examples in chosen.values() if len(examples) == 1)


def split(
    examples: Sequence[Example], labels: Mapping[str, str], validation_fraction: float
) -> tuple[list[Example], list[Example]]:
    """Return the examples to train on and those to validate on. Raises TrainingError if one side lacks a label.

    `labels`: label to the path of its documents.
    """
    train = [example for example in examples if not example.held_out]
    held_out = [example for example in examples if example.held_out]
    for side, of_side in (("training", train), ("validation", held_out)):
        labels_of_side = {example.label for example in of_side}
        for label, path in labels.items():
            if label not in labels_of_side:
                raise TrainingError(
                    f"The label {label!r} ({path!r}) has no example on the {side} side at validation_fraction="
                    f"{validation_fraction!r}, expected at least one. Pass more examples, or another fraction."
                )
    return train, held_out


def by_label(name: str, examples: Sequence[Example], labels: Mapping[str, str]) -> dict[str, int]:
    """Return the entries of a stage's result: the number of examples, and of those of each label."""
    counts = Counter(example.label for example in examples)
    return {name: len(examples), **{f"{name}_{label}": counts[label] for label in labels}}


def check_labels(labels: Mapping[str, str]) -> None:
    """Raise TrainingError for a label that is no word: it is part of the names of numbers."""
    if not labels or not all(LABEL.fullmatch(label) for label in labels):
        raise TrainingError(
            f"The labels are {list(labels)!r}, expected two or more names of letters and digits. "
            'Pass examples={"positive": …, "negative": …}.'
        )


def check_parameters(config: Any, minimums: Mapping[str, int], above_zero: Sequence[str]) -> None:
    """Raise TrainingError for a field below its minimum, or a number that must be above 0 and is not."""
    for name, minimum in minimums.items():
        if getattr(config, name) < minimum:
            raise TrainingError(f"{name} is {getattr(config, name)!r}, expected at least {minimum}. Raise it.")
    for name in above_zero:
        if not getattr(config, name) > 0:
            raise TrainingError(f"{name} is {getattr(config, name)!r}, expected a number above 0. Raise it.")
