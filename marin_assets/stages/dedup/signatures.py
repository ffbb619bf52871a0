"""Sign documents: write band files, shard for shard, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marin_assets.documents import Document, read_documents
from marin_assets.stages.dedup.bands import BLOCK_DOCUMENTS, FORMAT_VERSION, write_block
from marin_assets.stages.dedup.minhash import MinHash, Signer
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.storage.files import open_atomic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH_DOCUMENTS = 1024
"""Signatures held in memory before they become keys: 460 kB for 112 permutations."""


@dataclass(frozen=True, kw_only=True)
class SignConfig:
    """The config of `sign_shard`."""

    minhash: MinHash
    format_version: int = FORMAT_VERSION
    """Format of band files: files of another format are written again."""
    is_against: bool = False
    """Whether these are documents of another corpus, which are counted as such."""


def sign_shard(shard: FileShard) -> dict[str, int]:
    """Write the band files of one group of shards. Returns documents, and documents_without_words: those
    unsigned; of another corpus also documents_against."""
    signer = Signer(shard.config.minhash)
    counts = Counter(documents=0, documents_without_words=0)
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        with open_atomic(target, replace=False) as out:
            for keys, rows in blocks_of(read_documents(file.path), signer, counts):
                write_block(out, keys, rows, signer.minhash)
    if shard.config.is_against:
        counts["documents_against"] = counts["documents"]
    return dict(counts)


def blocks_of(
    documents: Iterable[Document], signer: Signer, counts: Counter[str]
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
    """Yield (keys [n, bands], rows [n]) of documents with a word. n is BLOCK_DOCUMENTS except for the last block."""
    import numpy as np

    keys = np.empty((BLOCK_DOCUMENTS, signer.minhash.bands), np.uint64)
    rows = np.empty(BLOCK_DOCUMENTS, np.uint32)
    filled = 0
    for batch_rows, signatures in _batches(documents, signer, counts):
        # BATCH_DOCUMENTS divides BLOCK_DOCUMENTS, so a batch never crosses a border of blocks
        keys[filled : filled + len(batch_rows)] = signer.band_keys(np.stack(signatures))
        rows[filled : filled + len(batch_rows)] = batch_rows
        filled += len(batch_rows)
        if filled == BLOCK_DOCUMENTS:
            yield keys, rows
            filled = 0
    yield keys[:filled], rows[:filled]


def _batches(
    documents: Iterable[Document], signer: Signer, counts: Counter[str]
) -> Iterator[tuple[list[int], list[NDArray[np.uint32]]]]:
    rows: list[int] = []
    signatures: list[NDArray[np.uint32]] = []
    for row, document in enumerate(documents):
        counts["documents"] += 1
        signature = signer.signature(document.text)
        if signature is None:
            counts["documents_without_words"] += 1
            continue
        rows.append(row)
        signatures.append(signature)
        if len(rows) == BATCH_DOCUMENTS:
            yield rows, signatures
            rows, signatures = [], []
    if rows:
        yield rows, signatures
