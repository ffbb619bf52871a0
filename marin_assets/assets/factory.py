"""Steps to Dagster assets: key, deps, code version, group, kinds, tags, description, metadata, checks."""

import inspect
import re
from collections.abc import Iterable

import dagster as dg

from marin_assets.assets.checks import check_specs, op_name
from marin_assets.assets.materialize import materialize
from marin_assets.plan.validation import key_of, validate
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.step import Step
from marin_resources.orchestrator.io_manager import IDENTITY, NAME, OVERRIDE, VERSION
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.wire.reference import reference_to


def build_assets(steps: Iterable[Step]) -> list[dg.AssetsDefinition]:
    """One asset for each step that these reach. Raises ConfigError before Dagster sees anything that it cannot take."""
    graph = build_graph(steps)
    return [build_asset(node, graph) for node in validate(graph)]


def build_asset(node: Node, graph: Graph) -> dg.AssetsDefinition:
    """The asset of one node. Its body only looks, submits, waits and reports."""
    spec = asset_spec(node)

    @dg.multi_asset(
        name=op_name(node.name),
        # an output of a type, and not a bare spec, so that the IO manager is given the path to confirm
        outs={"path": dg.AssetOut.from_spec(spec.replace_attributes(deps=[]), dagster_type=str)},
        deps=spec.deps,
        check_specs=check_specs(node.step, spec.key),
    )
    async def body(
        context: dg.AssetExecutionContext, store: StoreResource, ray_tpu: RayTPUResource
    ) -> dg.MaterializeResult:
        return await materialize(context, node, graph, store, ray_tpu)

    return body


def asset_spec(node: Node) -> dg.AssetSpec:
    """What Dagster knows of a node before it runs. Small, as every load of the code location carries it."""
    step = node.step
    metadata = {NAME: node.name, VERSION: node.version.hash, IDENTITY: node.version.identity}
    if step.override_output_path is not None:
        metadata[OVERRIDE] = step.override_output_path
    return dg.AssetSpec(
        asset_key(node),
        deps=[asset_key(dependency) for dependency in node.dependencies],
        code_version=node.version.hash,
        group_name=re.sub(r"\W", "_", node.name.split("/")[0]),
        description=description_of(step),
        kinds=set(step.kinds),
        owners=list(step.owners),
        tags=dict(step.tags),
        metadata={**metadata, "marin/path": node.version.path, "marin/function": reference_to(step.fn)},
    )


def asset_key(node: Node) -> dg.AssetKey:
    """The step's own key, or its name's segments."""
    return dg.AssetKey(list(key_of(node)))


def description_of(step: Step) -> str | None:
    """The step's description, or its function's docstring."""
    return step.description or inspect.getdoc(step.fn)
