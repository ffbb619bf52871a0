"""Dagster assets of steps: key, deps, code version, group, kinds, tags, description, metadata, checks."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from marin_assets.assets.body.materialize import materialize
from marin_assets.assets.checks import check_specs, op_name
from marin_assets.catalog.asset_key import group_of, key_of
from marin_assets.catalog.description import description_of, kinds_of
from marin_assets.catalog.validation import validate
from marin_assets.plan.record_facts.origins import total_of_origins
from marin_assets.plan.requirements import requirements_of
from marin_assets.step.graph import Graph, Node
from marin_assets.step.partitions.products import ProductPartitions
from marin_assets.step.partitions.reads import Read
from marin_assets.step.partitions.sets import DynamicPartitions, Partitions, StaticPartitions
from marin_assets.step.partitions.windows import Cadence, TimePartitions
from marin_assets.step.step import Step
from marin_resources.orchestrator.io_manager import IDENTITY, NAME, OVERRIDE, VERSION
from marin_resources.orchestrator.preflight import REQUIRES
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.wire.reference import reference_to

REMOVAL = "A key that is removed from the set removes nothing in the store."


_TIME = {
    Cadence.HOURLY: dg.HourlyPartitionsDefinition,
    Cadence.DAILY: dg.DailyPartitionsDefinition,
    Cadence.WEEKLY: dg.WeeklyPartitionsDefinition,
    Cadence.MONTHLY: dg.MonthlyPartitionsDefinition,
}


def build_assets(graph: Graph) -> list[dg.AssetsDefinition]:
    """One asset for each node. Raises ConfigError for a node that Dagster could not take."""
    return [build_asset(node, graph) for node in validate(graph)]


def build_asset(node: Node, graph: Graph) -> dg.AssetsDefinition:
    """The asset of one node. Its body looks, submits, waits and reports; it computes nothing."""
    spec = asset_spec(node)

    @dg.multi_asset(
        name=op_name(node.name),
        # an output with a type, not a bare spec, so that the IO manager gets the value to confirm
        outs={"observed": dg.AssetOut.from_spec(spec.replace_attributes(deps=[]), dagster_type=dict)},
        # Dagster makes names of inputs from keys, and takes no "=" or "," in them
        ins={
            op_name(dep.asset_key.to_user_string()): dg.AssetIn(
                dep.asset_key, partition_mapping=dep.partition_mapping, dagster_type=dg.Nothing
            )
            for dep in spec.deps
        },
        check_specs=check_specs(node.step, spec.key),
        partitions_def=spec.partitions_def,
        backfill_policy=_backfill_policy(node.step),
        pool=node.step.resources.pool,
    )
    async def body(
        context: dg.AssetExecutionContext, store: StoreResource, ray_tpu: RayTPUResource
    ) -> dg.MaterializeResult:
        return await materialize(context, node, graph, store, ray_tpu)

    return body


def _backfill_policy(step: Step) -> dg.BackfillPolicy | None:
    """One run for all partitions, unless the step limits them."""
    if step.partitions is None:
        return None
    limit = step.max_partitions_per_run
    return dg.BackfillPolicy.single_run() if limit is None else dg.BackfillPolicy.multi_run(limit)


def asset_spec(node: Node) -> dg.AssetSpec:
    """The asset's definition. It is small, as every load of the code location carries it."""
    step = node.step
    metadata: dict[str, Any] = {NAME: node.name, VERSION: node.version.hash, IDENTITY: node.version.identity}
    if step.override_output_path is not None:
        metadata[OVERRIDE] = step.override_output_path
    if not (required := requirements_of(node)).plain:
        metadata[REQUIRES] = dg.MetadataValue.json(required.to_dict())
    if step.partitions is not None:
        metadata["marin/partitions"] = f"{step.partitions!r}. {REMOVAL}"
    if node.origins:
        metadata["marin/raw_data"] = total_of_origins(node.origins).describe()
    return dg.AssetSpec(
        asset_key(node),
        deps=dependencies_of(node),
        partitions_def=None if step.partitions is None else definition_of(step.partitions),
        code_version=node.version.hash,
        group_name=group_of(node),
        description=description_of(step),
        kinds=kinds_of(step),
        owners=list(step.owners),
        tags=dict(step.tags),
        metadata={**metadata, "marin/path": node.version.path, "marin/function": reference_to(step.fn)},
    )


def asset_key(node: Node) -> dg.AssetKey:
    """The step's own key, or the one that its name gives: see catalog/asset_key.py."""
    return dg.AssetKey(list(key_of(node)))


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
