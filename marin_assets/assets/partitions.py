"""Sets of partitions as Dagster's, and the reads of a step as Dagster's mappings between them."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from marin_assets.catalog.asset_key import key_of
from marin_assets.step.graph import Node
from marin_assets.step.partitions.products import ProductPartitions
from marin_assets.step.partitions.reads import Read
from marin_assets.step.partitions.sets import DynamicPartitions, Partitions, StaticPartitions
from marin_assets.step.partitions.windows import Cadence, TimePartitions

_TIME = {
    Cadence.HOURLY: dg.HourlyPartitionsDefinition,
    Cadence.DAILY: dg.DailyPartitionsDefinition,
    Cadence.WEEKLY: dg.WeeklyPartitionsDefinition,
    Cadence.MONTHLY: dg.MonthlyPartitionsDefinition,
}


def definition_of(partitions: Partitions) -> dg.PartitionsDefinition:
    """Dagster's definition of a set, with the same keys."""
    if isinstance(partitions, StaticPartitions):
        return dg.StaticPartitionsDefinition(list(partitions.keys))
    if isinstance(partitions, DynamicPartitions):
        return dg.DynamicPartitionsDefinition(name=partitions.name)
    if isinstance(partitions, TimePartitions):
        return _TIME[partitions.cadence](start_date=partitions.key_at(partitions.start))
    assert isinstance(partitions, ProductPartitions)
    return dg.MultiPartitionsDefinition(
        {name: definition_of(dimension) for name, dimension in partitions.dimensions.items()}
    )


def dependencies_of(node: Node) -> list[dg.AssetDep]:
    """The assets that the node reads, each with the partitions that it reads of it."""
    reads: dict[Node, list[Read]] = {source: [] for source in node.dependencies}
    for source, read in node.reads:
        reads[source].append(read)
    return [
        dg.AssetDep(dg.AssetKey(list(key_of(source))), partition_mapping=_mapping(node, source, source_reads))
        for source, source_reads in reads.items()
    ]


def _mapping(node: Node, source: Node, reads: Sequence[Read]) -> dg.PartitionMapping | None:
    """One mapping for all reads of an input, as Dagster has one for each. If the input is read at the reader's own key
    too, the named keys are left out: a run finds them by itself, and reports it if they are missing."""
    if source.step.partitions is None:
        return None
    own = [read for read in reads if not read.named]
    if not own:
        return dg.SpecificPartitionsPartitionMapping(list(dict.fromkeys(key for read in reads for key in read.named)))
    if own[0].dimension is not None:
        return dg.MultiToSingleDimensionPartitionMapping(own[0].dimension)
    if isinstance(node.step.partitions, TimePartitions):
        return dg.TimeWindowPartitionMapping()
    return dg.IdentityPartitionMapping()
