"""Decide about near-duplicates: keep one document of each cluster, by an explicit policy.

In:  documents, and their cluster table (from `find_near_duplicates`).
Out: attributes, shard for shard. Reason "near_duplicate"; value is the number of documents in the cluster, 1 for a
     document without a near-duplicate. Of a cluster with a document of another corpus none is kept (`against`).

The policy can change without finding the clusters again. Tasks turn rows of the table into candidates, shard by shard;
this process chooses the best of each cluster (at most 80 bytes a cluster, twice that during a merge); tasks then write
the attributes, with 8 bytes of memory for each kept document of a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from marin_assets.documents import (
    SUFFIX,
    BadRow,
    document_files,
    document_shards,
    output_name,
    read_documents,
    read_rows,
)
from marin_assets.documents.attributes import KEPT, Decision, read_attributes, write_decisions
from marin_assets.stages.dedup.by_shard import ShardRecords, read_by_shard, write_by_shard
from marin_assets.stages.dedup.keep_policy import KeepPolicy, best, candidate, in_chunks, record
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard, folder_state
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import open_atomic, read_bytes, remove_folder
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    from numpy.typing import NDArray

HIDDEN = ".marin/near_duplicates"
REASON = "near_duplicate"
ALONE = Decision(keep=True, value=1.0)
COLUMNS = {"id", "shard", "row", "cluster", "size", "source", "characters", "tie"}


class ClusterTableError(MarinError, ValueError):
    """A cluster table, or attributes, that belong to other documents."""


@dataclass(frozen=True, kw_only=True)
class DecideNearDuplicatesConfig:
    documents_path: str
    clusters_path: str
    """The cluster table of these documents, the output of `find_near_duplicates`."""
    output_path: str = THIS_OUTPUT_PATH
    keep: str = versioned("first")
    """The policy that chooses the kept document: "first", "longest" or "highest" (`keep_policy.py`)."""
    attributes_path: str | None = None
    """For "highest": attributes of these documents, whose values are compared."""
    sources: tuple[str, ...] = versioned(())
    """Ranking of sources, compared before the policy. Sources without a rank come last."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _policy, name)


@dataclass(frozen=True, kw_only=True)
class DecisionConfig:
    """The config of `decide_shard`."""

    clusters_path: str
    kept: ShardRecords
    """The numbers of these shards' documents that are kept, of those in a cluster."""


def decide_near_duplicates(config: DecideNearDuplicatesConfig) -> dict[str, int | float]:
    """Write the attributes.

    Returns documents, kept, rejected, rejected_near_duplicate and clusters. Raises KeepPolicyError; ClusterTableError
    (in a ShardError, from a shard) if the table or the attributes belong to other documents.
    """
    policy = _policy(config)
    hidden, documents = join(config.output_path, HIDDEN), document_files(config.documents_path)
    tables = folder_state(config.clusters_path)
    attributes = [] if config.attributes_path is None else [folder_state(config.attributes_path)]
    ranking = document_shards(
        config.clusters_path, join(hidden, "candidates"), policy, suffix=".candidates", also_read=attributes
    )
    to_decide = document_shards(documents, config.output_path, None, also_read=[tables])
    _require_as_many_tables(config, ranking, to_decide)
    map_shards(write_candidates, ranking, output_path=config.output_path)
    kept = best(_candidates(output) for shard in ranking for output in shard.outputs)
    kept_by_shard = write_by_shard(join(hidden, "kept.bin"), [len(shard.inputs) for shard in to_decide], kept, {})
    to_decide = [
        replace(shard, config=DecisionConfig(clusters_path=config.clusters_path, kept=own))
        for shard, own in zip(to_decide, kept_by_shard, strict=True)
    ]
    counts = map_shards(decide_shard, to_decide, output_path=config.output_path)
    remove_folder(hidden)
    return {f"rejected_{REASON}": 0, **counts, "clusters": len(kept), **documents.counts}


def _policy(config: DecideNearDuplicatesConfig) -> KeepPolicy:
    return KeepPolicy(keep=config.keep, sources=tuple(config.sources), attributes_path=config.attributes_path)


def _require_as_many_tables(
    config: DecideNearDuplicatesConfig, ranking: Sequence[FileShard], to_decide: Sequence[FileShard]
) -> None:
    tables, documents = (sum(len(shard.inputs) for shard in shards) for shards in (ranking, to_decide))
    if tables != documents:
        raise _mismatch(f"{config.clusters_path!r} has {tables} shards, {config.documents_path!r} has {documents}")


def write_candidates(shard: FileShard) -> dict[str, int]:
    """Write the candidates of a group of shards of the cluster table. Returns candidates."""
    count = 0
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        rows = _with_values(_table(file.path), file.name, shard.config.attributes_path)
        with open_atomic(target, replace=False) as out:
            # a document with a near-duplicate in another corpus is none: its cluster has its copy there
            candidates = (candidate(shard.config, row, value) for row, value in rows if not row.get("against"))
            for chunk in in_chunks(candidates):
                out.write(chunk.tobytes())
                count += len(chunk)
    return {"candidates": count}


def decide_shard(shard: FileShard) -> dict[str, int]:
    """Returns documents, kept, rejected, rejected_near_duplicate."""
    counts: Counter[str] = Counter(documents=0, kept=0, rejected=0)
    for file, target, kept in zip(shard.inputs, shard.outputs, read_by_shard(shard.config.kept), strict=True):
        table = join(shard.config.clusters_path, output_name(file, SUFFIX))
        write_decisions(target, _decisions(file.path, table, iter(kept["document"].tolist())), counts)
    return dict(counts)


def _decisions(documents_path: str, table_path: str, kept: Iterator[int]) -> Iterator[tuple[str, Decision]]:
    """Yield (id, decision) of one shard. `kept` are the numbers of its kept documents, ascending."""
    table, next_kept = _table(table_path), next(kept, None)
    row = next(table, None)
    for at, document in enumerate(read_documents(documents_path)):
        if row is None or row["row"] != at:
            yield document.id, ALONE
            continue
        if row["id"] != document.id:
            raise _mismatch(f"{table_path!r} has {row['id']!r} in row {at} of {documents_path!r}, not {document.id!r}")
        if (row["shard"] << 32) + at == next_kept:
            yield document.id, Decision(keep=True, value=float(row["size"]))
            next_kept = next(kept, None)
        else:
            yield document.id, Decision(keep=False, reason=REASON, value=float(row["size"]))
        row = next(table, None)
    if row is not None or next_kept is not None:
        raise _mismatch(f"{table_path!r} has rows beyond those of {documents_path!r}")


def _with_values(
    table: Iterator[dict[str, Any]], name: str, attributes_path: str | None
) -> Iterator[tuple[dict[str, Any], float | None]]:
    if attributes_path is None:
        yield from ((row, None) for row in table)
        return
    path = join(attributes_path, name)
    attributes = enumerate(read_attributes(path))
    for row in table:
        id, decision = next((to_decide for at, to_decide in attributes if at == row["row"]), ("", KEPT))
        if id != row["id"]:
            raise _mismatch(f"{path!r} has {id!r} in row {row['row']}, not {row['id']!r}")
        yield row, decision.value


def _table(path: str) -> Iterator[dict[str, Any]]:
    for number, row in read_rows(path):
        if isinstance(row, BadRow) or not row.keys() >= COLUMNS:
            raise ClusterTableError(f"{path!r} line {number} is not a row of a cluster table. Find the clusters again.")
        yield row


def _candidates(path: str) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(read_bytes(path), record())


def _mismatch(difference: str) -> ClusterTableError:
    return ClusterTableError(f"{difference}: they belong to other documents. Pass the documents of the cluster table.")
