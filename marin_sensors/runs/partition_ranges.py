"""Runs of many partitions: Dagster's ranges of keys, within what the assets allow for one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from marin_resources.dagster_fixes.partition_keys import PARTITION_TAG, RANGE_END_TAG, RANGE_START_TAG

SEPARATOR = "|"
"""Dagster's, between the keys of the dimensions of a product."""
Range = tuple[Sequence[str], tuple[dg.AssetKey, ...]]
"""Keys that follow one another in their set, and the assets that are made at all of them."""


def ranges_of(
    graph: Any, all_keys: Sequence[str], assets_by_key: Mapping[str, tuple[dg.AssetKey, ...]]
) -> Iterator[Range]:
    """The ranges of the keys of `assets_by_key`, which are in the order of the set backwards: the last range first.

    Dagster's range of a product is one of each dimension, so a range stays within one key of the first dimension.

    all_keys        the keys of the set, in its order
    assets_by_key   key -> the assets that are materialized at it; a range has keys of the same assets alone
    """
    place = {key: number for number, key in enumerate(all_keys)}
    chunk: list[str] = []
    assets: tuple[dg.AssetKey, ...] = ()
    for key, own in assets_by_key.items():
        joins = chunk and own == assets and place[key] + 1 == place[chunk[0]]
        joins = joins and (not _is_product(graph, own) or key_of_dimension(key, 0) == key_of_dimension(chunk[0], 0))
        if chunk and not (joins and len(chunk) < _most(graph, assets)):
            yield chunk, assets
            chunk = []
        chunk, assets = [key, *chunk], own
    if chunk:
        yield chunk, assets


def _is_product(graph: Any, assets: Sequence[dg.AssetKey]) -> bool:
    """Whether the assets have the product of two sets of partitions."""
    return isinstance(graph.get(assets[0]).partitions_def, dg.MultiPartitionsDefinition)


def key_of_dimension(key: str, number: int) -> str:
    """The key of one dimension, of a key of a product."""
    return key.split(SEPARATOR)[number]


def range_tags(chunk: Sequence[str]) -> dict[str, str]:
    """The tags of a run of this range."""
    return {RANGE_START_TAG: chunk[0], RANGE_END_TAG: chunk[-1]}


def range_of(run: dg.DagsterRun) -> tuple[str, str] | None:
    """The first and the last partition of a run, which are one if it has one; None for a run without."""
    first = run.tags.get(RANGE_START_TAG) or run.tags.get(PARTITION_TAG)
    last = run.tags.get(RANGE_END_TAG) or run.tags.get(PARTITION_TAG)
    return (first, last) if first and last else None


def _most(graph: Any, assets: Sequence[dg.AssetKey]) -> float:
    """The partitions of one run at most."""
    policies = [graph.get(key).backfill_policy for key in assets]
    limits = [policy.max_partitions_per_run if policy is not None else 1 for policy in policies]
    return min((limit for limit in limits if limit is not None), default=float("inf"))
