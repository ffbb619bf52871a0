"""Count documents, by source.

In:  documents, and the folder of a tokenizer to count tokens too.
Out: counts.json: {"format_version": 1, "total": {…}, "by_source": {source: {…}}}, each with documents, characters,
     bytes (UTF-8), words (runs of non-whitespace characters) and, with a tokenizer, tokens (without special tokens).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from marin_assets.documents import Document, document_files, document_shards, read_documents
from marin_assets.documents.caches.tokens import token_counter
from marin_assets.step.values import THIS_OUTPUT_PATH
from marin_resources.ray_tpu.shards.file_shards import FileShard, folder_state
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import write_json
from marin_resources.storage.paths import join

FORMAT_VERSION = 1
BATCH = 256
"""Documents that are read and tokenized together."""
SEPARATOR = "\t"
"""Separates a unit from the source in the counts of a shard."""


@dataclass(frozen=True, kw_only=True)
class CountDocumentsConfig:
    documents_path: str
    """Documents to count."""
    tokenizer_path: str | None = None
    """Folder of a tokenizer; None counts no tokens."""
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True, kw_only=True)
class Counting:
    """Config of a shard of `count_shard`."""

    tokenizer_path: str | None


def count_documents(config: CountDocumentsConfig) -> dict[str, int | float]:
    """Count documents, by source.

    Returns documents, characters, bytes, words, sources, shards; with a tokenizer, also tokens and bytes_per_token.
    """
    tokenizer = [] if config.tokenizer_path is None else [folder_state(config.tokenizer_path)]
    counting = Counting(tokenizer_path=config.tokenizer_path)
    documents = document_files(config.documents_path)
    shards = document_shards(documents, config.output_path, counting, also_read=tokenizer)
    # The shards have no output files: their counts are in their notes.
    without_outputs = [dataclasses.replace(shard, outputs=()) for shard in shards]
    counted = map_shards(count_shard, without_outputs, output_path=config.output_path)
    by_source: dict[str, dict[str, int | float]] = {}
    for key, number in counted.items():
        unit, separator, source = key.partition(SEPARATOR)
        if separator:
            by_source.setdefault(source, {})[unit] = number
    total = {key: number for key, number in counted.items() if SEPARATOR not in key}
    counts = {"format_version": FORMAT_VERSION, "total": total, "by_source": dict(sorted(by_source.items()))}
    write_json(join(config.output_path, "counts.json"), counts)
    return {**total, "sources": len(by_source), "shards": len(documents.shards), **_rates(total), **documents.counts}


def count_shard(shard: FileShard) -> Counts:
    config: Counting = shard.config
    count_tokens = token_counter(config.tokenizer_path) if config.tokenizer_path else None
    names = ("documents", "characters", "bytes", "words", *(("tokens",) if count_tokens else ()))
    counts: Counter[str] = Counter(dict.fromkeys(names, 0))
    for file in shard.inputs:
        documents = read_documents(file.path)
        while batch := list(islice(documents, BATCH)):
            rows = [_numbers(document) for document in batch]
            if count_tokens:
                tokens = count_tokens([document.text for document in batch])
                rows = [numbers | {"tokens": n} for numbers, n in zip(rows, tokens, strict=True)]
            for document, numbers in zip(batch, rows, strict=True):
                counts.update(numbers)
                counts.update({f"{unit}{SEPARATOR}{document.source}": number for unit, number in numbers.items()})
    return dict(counts)


def _numbers(document: Document) -> dict[str, int]:
    return {
        "documents": 1,
        "characters": len(document.text),
        "bytes": len(document.text.encode()),
        "words": len(document.text.split()),
    }


def _rates(total: Mapping[str, int | float]) -> dict[str, float]:
    return {"bytes_per_token": total["bytes"] / max(1, total["tokens"])} if "tokens" in total else {}
