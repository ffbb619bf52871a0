"""The facts in an output's record that are known before the computation, and those of them that may drift.

describe_node     all facts: the step, its config, version and inputs, the code and the environment
facts_now         today's facts that the version does not cover, to be compared later
drifting_facts    today's facts that can drift, to compare with a record or with earlier facts
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from marin_assets.plan.record_facts.adopted_inputs import adopted_inputs, adopted_paths
from marin_assets.plan.record_facts.origins import recorded_origins
from marin_assets.step.graph import Graph, Node
from marin_assets.step.resolve import resolve
from marin_resources.drift.provenance import environment, provenance
from marin_resources.drift.source_digest import read_source, source_now
from marin_resources.drift.source_modules import Module
from marin_resources.ray_tpu.site import Site
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed, Output
from marin_resources.types.record import Record, SourceDigest
from marin_resources.wire.config_json import Json, encode, plain, references_in
from marin_resources.wire.reference import reference_to

MAKES_DATA = frozenset({"documents", "inference", "stages", "experiments"})
"""Rooms of marin_assets whose code computes data. The others declare, plan and report steps."""


def resolved_config(
    node: Node,
    graph: Graph,
    store: Store,
    site: Site | None = None,
    inputs: Mapping[str, Observed] = MappingProxyType({}),
) -> Json:
    """The config as the worker gets it. On a cluster of a fleet all paths are in its region, and missing data are
    copied before the function is called. Partitions are in many regions, and their records at home. Adopted ones of
    the observed `inputs` are read where they were adopted."""
    prefix = store.prefix if site is None else site.prefix
    return encode(resolve(node, graph, _locate(node, store, inputs, site), prefix, store.locate))


def describe_node(
    node: Node,
    store: Store,
    config: Json,
    inputs: Mapping[str, Observed],
    run_id: str | None,
    site: Site | None = None,
) -> dict[str, Any]:
    """The facts of an attempt. `inputs` are its observed inputs, by label; `site` is its cluster of a fleet."""
    return {
        "name": node.name,
        "fn_name": reference_to(node.step.fn),
        "description": node.step.description,
        "override_output_path": node.step.override_output_path,
        **({} if node.key is None else {"partition": node.key}),
        **({"asset_key": list(node.step.key)} if node.step.key else {}),
        "version": node.version.as_dict(),
        "dagster_run_id": run_id,
        **_placed(node, store, config),
        "dependencies": _dependencies(node, store, inputs, site),
        **adopted_inputs(inputs),
        **recorded_origins(node),
        **({} if site is None else {"cluster": site.cluster, "data_prefix": site.prefix, "site": site.describe()}),
        "inputs": {name: manifest_digest(observed) for name, observed in inputs.items()},
        "bytes_in": bytes_of(inputs),
        "source_digest": read_source(_references(node, config), counts),
        **provenance(reference_to(node.step.fn)),
    }


SourcesNow = dict[tuple[Any, ...], Mapping[str, Any] | None]
"""Sources that were read a moment ago, by references and by the digest in a record."""


def facts_now(node: Node, graph: Graph, store: Store) -> dict[str, Any]:
    """The facts of today that can drift until the node is computed."""
    config = resolved_config(node, graph, store)
    source = read_source(_references(node, config), counts)
    return {**_placed(node, store, config), "source_digest": source, "environment": environment()}


def drifting_facts(node: Node, graph: Graph, store: Store, record: Record, sources: SourcesNow | None = None) -> Record:
    """The facts of today that can drift. Source files that are unchanged since the record are not parsed.

    `sources` holds what was read a moment ago for other nodes; it gets what is read here.
    """
    config = resolved_config(node, graph, store)
    recorded = record.source_digest
    source = _source_now(_references(node, config), recorded, sources) if recorded else None
    return Record.from_dict({**_placed(node, store, config), "source_digest": source, "environment": environment()})


def _source_now(references: list[str], recorded: SourceDigest, sources: SourcesNow | None) -> Mapping[str, Any] | None:
    if sources is None:
        return source_now(references, counts, recorded.to_dict())
    key = (*references, recorded.function, recorded.digest, recorded.files_digest)
    if key not in sources:
        sources[key] = source_now(references, counts, recorded.to_dict())
    return sources[key]


def manifest_digest(observed: Observed) -> str | None:
    """The digest of an output's manifest; None for an incomplete output, and for Marin's, which has none."""
    return observed.record.manifest.digest if observed.done else None


def bytes_of(inputs: Mapping[str, Observed]) -> int | None:
    """The size of the inputs; None if that of one is not known, as of Marin's, which have no manifest."""
    sizes = [observed.record.manifest.bytes for observed in inputs.values()]
    recorded = [size for size in sizes if size is not None]
    return sum(recorded) if len(recorded) == len(sizes) else None


def counts(module: Module) -> bool:
    """Whether a change of the module can change outputs: code that declares, plans or reports steps cannot.

    A step's config reaches its function as plain values, which are recorded and compared themselves.
    """
    package, package, *_ = [*module.name.split("."), ""]
    return package != "marin_assets" or package in MAKES_DATA


def _placed(node: Node, store: Store, config: Json) -> dict[str, Any]:
    return {
        "config": plain(config),
        "prefix": store.prefix,
        "output_path": store.locate(node.output),
        "dependencies": [store.locate(output) for output in node.inputs.values()],
    }


def _locate(node: Node, store: Store, inputs: Mapping[str, Observed], site: Site | None) -> Callable[[Output], str]:
    """The path at which the function finds an output: its own one, or one of its inputs."""
    adopted, prefix = adopted_paths(node, inputs, site), None if site is None else site.prefix
    return lambda output: adopted.get(output) or store.locate(output, prefix)


def _dependencies(node: Node, store: Store, inputs: Mapping[str, Observed], site: Site | None) -> list[str]:
    """The paths of the inputs as the config has them, those in the region of the site as they would be at home."""
    paths = map(_locate(node, store, inputs, site), node.inputs.values())
    if site is None:
        return list(paths)
    inside = f"{site.prefix}/"
    return [join(store.prefix, path.removeprefix(inside)) if path.startswith(inside) else path for path in paths]


def _references(node: Node, config: Json) -> list[str]:
    """The function, and the classes of its config, which a worker imports too."""
    return [reference_to(node.step.fn), *sorted(references_in(config))]
