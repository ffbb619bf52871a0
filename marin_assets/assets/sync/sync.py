"""Bring Dagster's history in line with the store: a materialization for each complete output that it does not know.

In:  nodes and their store.   Out: materializations without a run, inputs first.

The store is the truth, and Dagster's database a view of it. So a database that is lost, new, or of another deployment
shows the outputs again: the same metadata, versions and partitions, but not the runs, ticks and older versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from marin_assets.assets.factory import asset_key
from marin_assets.assets.metadata.materialization import materialization_metadata
from marin_assets.assets.sync.latest_versions import partitions_with_drift, tags_of, versions_of_partitions
from marin_assets.assets.version_tags import DATA_VERSION, DRIFT, version_tags
from marin_assets.plan.plan import Planned
from marin_assets.plan.record_facts.contamination import contamination_of
from marin_assets.plan.record_facts.facts import manifest_digest
from marin_assets.plan.record_facts.node_drift import drift_of
from marin_assets.step.graph import Graph, Node
from marin_resources.dagster_fixes.event_batches import report_together
from marin_resources.drift.drift import Drift, Kind, describe
from marin_resources.orchestrator.produce import Produced
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed, Output

AT_ONCE = 500
"""Outputs that are read and reported together. A process that is killed leaves its last batch to the next one."""


def report_unknown(instance: dg.DagsterInstance, nodes: Sequence[Node], store: Store) -> Iterator[Node]:
    """Report a materialization of each of these nodes, and yield it. Those that are no longer complete are left out."""
    for begin in range(0, len(nodes), AT_ONCE):
        batch = nodes[begin : begin + AT_ONCE]
        looked = store.look([node.output for node in batch])
        done = [node for node in batch if looked[node.output].done]
        report_together(instance, [materialization_of(node, looked[node.output]) for node in done])
        yield from done


def report_reused(
    instance: dg.DagsterInstance,
    reused: Sequence[Planned],
    graph: Graph,
    store: Store,
    looked: Mapping[Output, Observed],
) -> None:
    """Report the reused outputs of a plan that Dagster does not know at this version, or whose drift it does not show.

    `looked`: those whose files were read.
    """
    whole = [item for item in reused if item.node.key is None]
    tags = tags_of(instance, [item.node for item in whole])
    unreported = [item for item in whole if _shows_another(tags.get(item.node.name, {}), item)]
    partitions: dict[Node, list[Planned]] = {}
    for item in reused:
        if item.node.key is not None:
            partitions.setdefault(graph[item.node.step], []).append(item)
    for step, items in partitions.items():
        versions, drifting = versions_of_partitions(instance, step), partitions_with_drift(instance, step)
        for item in items:
            key = str(item.node.key)
            shown = {DATA_VERSION: versions.get(key) or "", **({DRIFT: "true"} if key in drifting else {})}
            unreported += [item] if _shows_another(shown, item) else []
    for begin in range(0, len(unreported), AT_ONCE):
        report_together(instance, _events(unreported[begin : begin + AT_ONCE], graph, store, looked))


def _shows_another(tags: Mapping[str, str], item: Planned) -> bool:
    drifts = describe(item.drift) != ""
    return tags.get(DATA_VERSION) != item.node.version.hash or (tags.get(DRIFT) == "true") != drifts


def _events(
    items: Sequence[Planned], graph: Graph, store: Store, looked: Mapping[Output, Observed]
) -> list[dg.AssetMaterialization]:
    """The events of the complete outputs, from one look at them and their inputs."""
    outputs = [output for item in items for output in (item.node.output, *item.node.inputs.values())]
    seen = {**looked, **store.look(output for output in outputs if output not in looked)}
    events = []
    for item in items:
        node, observed = item.node, seen[item.node.output]
        if observed.done:
            digests = {label: manifest_digest(seen[output]) for label, output in node.inputs.items()}
            events.append(materialization_of(node, observed, *drift_of(node, graph, store, observed, digests)))
    return events


def materialization_of(
    node: Node, observed: Observed, drift: Sequence[Drift] = (), not_recorded: Sequence[Kind] = ()
) -> dg.AssetMaterialization:
    """The event of a complete output, as a run that reuses it would report it."""
    metadata = {
        **materialization_metadata(
            Produced(observed=observed, reused=True), drift, not_recorded, contamination_of(node), node.origins
        ),
        "path": dg.MetadataValue.path(observed.data_path),
        "synced": True,
    }
    drifts = {DRIFT: "true"} if describe(drift) else {}
    return dg.AssetMaterialization(
        asset_key(node),
        partition=node.key,
        metadata=metadata,
        tags={**version_tags(node), "marin/reused": "true", **drifts},
    )
