"""The facts that decide which cluster of a fleet computes a node."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from marin_assets.plan.sites.inputs import parts_read, urls_in
from marin_assets.step.graph import Graph, Node
from marin_assets.step.resolve import mirror_budget_gb
from marin_resources.ray_tpu.site import PlacementRequest, ReaderNeeds
from marin_resources.storage.files import sizes_below
from marin_resources.storage.manifest.manifest import read_manifest
from marin_resources.storage.output.store import Store
from marin_resources.storage.transfer.account import GB_BYTES, default_budget_bytes
from marin_resources.types.output import Observed


def needs_of(
    node: Node, graph: Graph, store: Store, inputs: Mapping[str, Observed], external: Mapping[str, str]
) -> PlacementRequest:
    """The facts that decide where the node of the graph is computed. `inputs`: observed, by label. `external`: path in
    the config -> its place."""
    budget_gb = mirror_budget_gb(node.step)
    parts = parts_read(node)

    @cache  # called for each cluster, and the answer may take a listing
    def size_of(name: str) -> int | None:
        if name in external:
            return sum(sizes_below(external[name]).values())
        return _bytes_of(inputs[name], parts.get(node.inputs[name].name, ()))

    return PlacementRequest(
        step=node.output.label,
        resources=node.step.resources,
        places={
            **{label: seen.data_path for label, seen in inputs.items()},
            **{name: path for name, path in external.items() if "://" not in name},
        },
        external=frozenset(external) | {label for label, seen in inputs.items() if seen.adopted is not None},
        urls=tuple(urls_in(node)),
        readers=needs_of_readers(graph)[graph[node.step]],
        size_of=size_of,
        earlier=store.data_path(node.output) if node.step.resumable and store.has_begun(node.output) else None,
        budget_bytes=default_budget_bytes() if budget_gb is None else round(budget_gb * GB_BYTES),
    )


def _bytes_of(seen: Observed, parts: tuple[str, ...]) -> int | None:
    """The bytes of an output, or of the named parts of it; None for one of Marin's, which has no manifest."""
    whole = seen.record.manifest.bytes
    if whole is None or not parts:
        return whole
    manifest = read_manifest(seen.path)
    if manifest is None:
        return int(whole)
    return sum(
        entry.size
        for entry in manifest.entries
        if any(entry.name == part or entry.name.startswith(f"{part}/") for part in parts)
    )


@lru_cache(maxsize=4)
def needs_of_readers(graph: Graph) -> Mapping[Node, tuple[ReaderNeeds, ...]]:
    """Node -> the needs of the steps that read it: first of those that read it directly, then of those that read it
    through others. Equal needs are listed once."""
    direct: dict[Node, dict[ReaderNeeds, None]] = {node: {} for node in graph}
    further: dict[Node, dict[ReaderNeeds, None]] = {node: {} for node in graph}
    for reader in reversed(graph.nodes):  # readers before inputs
        own = ReaderNeeds(resources=reader.step.resources, urls=tuple(urls_in(reader)))
        for node in dict.fromkeys((*reader.dependencies, *reader.pseudo_dependencies)):
            direct[node][own] = None
            further[node] |= {**direct[reader], **further[reader]}
    return {node: tuple({**direct[node], **further[node]}) for node in graph}
