"""Reject documents whose text occurs more than once in the corpus, except one of each.

In:  documents.
Out: attributes, shard for shard. Of equal documents one is kept, the others are rejected as "exact_duplicate". `value`
     is the number of equal documents, also for a kept one, and 1 for a document without an equal. A later step can
     sample by it (Penedo et al. 2025, FineWeb-2, arXiv:2506.20920).

Documents are identified by shard and row, never by their id. The choice depends on the documents' order alone. See
`exact_copies.py` for the phases and their memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents import read_documents
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.documents.equal.copies import Copies, decide_copies
from marin_assets.documents.equal.hashes import (
    MAX_RANK,
    Batch,
    DuplicatesError,
    digest_of,
    require_normalization,
    write_hashes,
)
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts


@dataclass(frozen=True, kw_only=True)
class ExactDuplicatesConfig:
    documents_path: str
    output_path: str = THIS_OUTPUT_PATH
    normalize: str = versioned("none")
    """Texts are equal if their characters are ("none"), or if they differ only in whitespace and case
    ("whitespace_and_case", with Unicode's case folding)."""
    source_ranking: tuple[str, ...] = versioned(())
    """Order of sources: the copy whose source comes first is kept, and of one source the first in the documents'
    order (shard name, row). Sources without a rank come last. Empty: the first document is kept."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def exact_duplicates(config: ExactDuplicatesConfig) -> dict[str, int | float]:
    """Write the attributes.

    Returns documents, kept, rejected, rejected_exact_duplicate, groups (of two or more equal documents), and
    duplicate_share. Raises DuplicatesError for an unknown normalization or a bad ranking.
    """
    _check(config)
    counts = decide_copies(
        config.documents_path, config.output_path, config, hash_units=hash_documents, decide_units=decide_documents
    )
    counts.setdefault("rejected_exact_duplicate", 0)
    return {**counts, "duplicate_share": counts["rejected"] / max(counts["documents"], 1)}


def _check(config: ExactDuplicatesConfig) -> None:
    require_normalization(config.normalize)
    ranking = config.source_ranking
    if len(set(ranking)) != len(ranking) or len(ranking) >= MAX_RANK:
        raise DuplicatesError(f"source_ranking is {ranking!r}, expected each source once and fewer than {MAX_RANK}.")


def hash_documents(shard: FileShard) -> Counts:
    """The first phase, for one group of shards. Returns units."""
    return {"units": write_hashes(shard.outputs[0], _hashed(shard))}


def _hashed(shard: FileShard) -> Iterator[Batch]:
    config = shard.config.config
    digest, ranking = digest_of(config.normalize), config.source_ranking
    ranks = {source: rank for rank, source in enumerate(ranking)}
    for number, file in enumerate(shard.inputs, start=shard.config.first_shard):
        for row, document in enumerate(read_documents(file.path)):
            yield (digest(document.text),), ranks.get(document.source, len(ranking)), number, row


def decide_documents(shard: FileShard) -> Counts:
    """The third phase, for one group of shards. Returns documents, kept, rejected, rejected_exact_duplicate."""
    copies, counts = Copies(shard.config), Counter[str](documents=0, kept=0, rejected=0)
    for number, (file, target) in enumerate(
        zip(shard.inputs, shard.outputs, strict=True), start=shard.config.first_shard
    ):
        decisions = (
            (document.id, _decision(*copies.of(number, row))) for row, document in enumerate(read_documents(file.path))
        )
        write_decisions(target, decisions, counts)
    return dict(counts)


def _decision(copies: int, kept: bool) -> Decision:
    return Decision(keep=kept, reason="" if kept else "exact_duplicate", value=float(copies))
