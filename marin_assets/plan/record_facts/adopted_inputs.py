"""Adopted outputs among the inputs of a node: the paths at which they are read, and their entries in the record of the
reader.

And the facts that the record of an adopted output has of its own step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from marin_assets.plan.partitions import with_partitions
from marin_assets.plan.record_facts.origins import recorded_origins
from marin_assets.step.graph import Graph, Node
from marin_resources.ray_tpu.site import Site
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed, Output
from marin_resources.types.places import is_same

if TYPE_CHECKING:
    from marin_resources.storage.adoption.source import Source


def unwaited_inputs(node: Node) -> dict[str, Output]:
    """The outputs that the node reads and does not wait for, by label. Partitions are found by their snapshot."""
    return {source.name: source.output for source in node.pseudo_dependencies if source.step.partitions is None}


def adopted_paths(node: Node, inputs: Mapping[str, Observed], site: Site | None) -> dict[Output, str]:
    """The path at which the function reads each adopted one of the observed inputs: that of its data, or one in the
    region of the site, if they move there."""
    outputs = {**node.inputs, **unwaited_inputs(node)}
    return {outputs[label]: _path_at(label, seen, site) for label, seen in inputs.items() if seen.adopted is not None}


def _path_at(label: str, seen: Observed, site: Site | None) -> str:
    moves = site.moves if site is not None else ()
    move = next((move for move in moves if move.what == label), None)
    return seen.data_path if site is None or move is None else join(site.prefix, move.relative)


def adopted_inputs(inputs: Mapping[str, Observed]) -> dict[str, Any]:
    """The fact that the reader of these inputs records: the adopted outputs that it is computed from, directly or
    through others."""
    adopted: dict[str, Any] = {}
    for label, seen in inputs.items():
        adopted |= {name: origin.to_dict() for name, origin in seen.record.adopted_inputs.items()}
        adopted |= seen.result.get("adopted_inputs") or {}  # a snapshot returns those of its partitions
        if seen.adopted is not None:
            adopted[label] = {"from": seen.adopted.path, "why": seen.adopted.why}
    return {"adopted_inputs": dict(sorted(adopted.items()))} if adopted else {}


def facts_of_adopted(node: Node, store: Store, source: Source) -> dict[str, Any]:
    """The facts of an adopted output's own step. No config and no code is among them, as the step computed no data."""
    made = source.record
    adopted = {name: origin.to_dict() for name, origin in made.adopted_inputs.items()}
    return {
        "name": node.name,
        "fn_name": made.fn_name,
        "description": node.step.description,
        "override_output_path": node.step.override_output_path,
        **({} if node.key is None else {"partition": node.key}),
        "version": node.version.as_dict(),
        "prefix": store.prefix,
        "output_path": store.locate(node.output),
        "dependencies": list(made.dependencies),
        **({"adopted_inputs": adopted} if adopted else {}),
        **recorded_origins(node),
    }


def made_from(graph: Graph, node: Node, store: Store, source: str) -> list[str]:
    """The labels of the complete outputs that were computed from the node's output, adopted from `source`, by their
    records."""
    readers = with_partitions(store, graph.downstream(graph[node.step]))
    looked = store.look(reader.output for reader in readers)
    return [reader.output.label for reader in readers if _says(looked[reader.output], node.output.label, source)]


def _says(seen: Observed, label: str, source: str) -> bool:
    origin = seen.record.adopted_inputs.get(label)
    return seen.done and origin is not None and is_same(origin.path, source)
