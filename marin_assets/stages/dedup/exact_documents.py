"""Reject documents whose text the corpus has already.

In:  documents.
Out: attributes, shard for shard. A document that has an equal and is not the one that is kept is rejected as
     "exact_duplicate". `value` is the number of equal documents, 1 for one that has none, also for those that are
     kept: who samples by the number of copies (Penedo et al. 2025, FineWeb-2, arXiv:2506.20920) finds it there.

Documents are told apart by shard and row, never by their id. What is kept depends on the documents' order alone. See
`exact_copies.py` for the phases and their memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents import read_documents
from marin_assets.documents.attributes import Verdict, write_verdicts
from marin_assets.stages.dedup.exact_copies import Copies, judge_copies
from marin_assets.stages.dedup.exact_hashes import MAX_RANK, Batch, digest_of, write_hashes
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts


@dataclass(frozen=True, kw_only=True)
class ExactDuplicatesConfig:
    documents_path: str
    output_path: str = THIS_OUTPUT_PATH
    normalize: str = versioned("none")
    """What counts as equal: "none", the same characters; "whitespace_and_case", the same but for white space and case
    (Unicode's case folding)."""
    source_ranking: tuple[str, ...] = versioned(())
    """Of equal documents the one whose source comes first here is kept, and of one source the first in the documents'
    order (shard name, row). Sources that are not named come after those that are. Empty: the first is kept."""


def exact_duplicates(config: ExactDuplicatesConfig) -> dict[str, int | float]:
    """Returns documents, kept, rejected, rejected_exact_duplicate, groups (of two or more), and duplicate_share."""
    _check(config)
    counts = judge_copies(
        config.documents_path, config.output_path, config, hash_units=hash_documents, judge_units=judge_documents
    )
    counts.setdefault("rejected_exact_duplicate", 0)
    return {**counts, "duplicate_share": counts["rejected"] / max(counts["documents"], 1)}


def _check(config: ExactDuplicatesConfig) -> None:
    digest_of(config.normalize)
    ranking = config.source_ranking
    if len(set(ranking)) != len(ranking) or len(ranking) >= MAX_RANK:
        raise ValueError(f"source_ranking is {ranking!r}, expected different sources, less than {MAX_RANK} of them.")


def hash_documents(shard: FileShard) -> Counts:
    return {"units": write_hashes(shard.outputs[0], _hashed(shard))}


def _hashed(shard: FileShard) -> Iterator[Batch]:
    ask = shard.config
    digest, ranking = digest_of(ask.config.normalize), ask.config.source_ranking
    ranks = {source: rank for rank, source in enumerate(ranking)}
    for number, file in enumerate(shard.inputs, start=ask.first_shard):
        for row, document in enumerate(read_documents(file.path)):
            yield (digest(document.text),), ranks.get(document.source, len(ranking)), number, row


def judge_documents(shard: FileShard) -> Counts:
    copies, counts = Copies(shard.config), Counter[str](documents=0, kept=0, rejected=0)
    for number, (file, target) in enumerate(
        zip(shard.inputs, shard.outputs, strict=True), start=shard.config.first_shard
    ):
        verdicts = (
            (document.id, _verdict(*copies.of(number, row))) for row, document in enumerate(read_documents(file.path))
        )
        write_verdicts(target, verdicts, counts)
    return dict(counts)


def _verdict(copies: int, kept: bool) -> Verdict:
    return Verdict(keep=kept, reason="" if kept else "exact_duplicate", value=float(copies))
