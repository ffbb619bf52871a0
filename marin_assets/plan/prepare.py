"""The whole plan of some nodes: their states from the store, the reason to the field, drift, and expected costs.

In:  nodes of a graph, and the store.   Out: the plan.   Written: markers and packs, which make the next plan faster.

Few outputs are read one by one, with all files that a run reads. Many are listed by their markers: then the
plan shows a complete output as its marker records it, and the run looks at it when it reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from marin_assets.plan.estimates import estimates
from marin_assets.plan.lost_data import with_lost_data
from marin_assets.plan.partitions import known_partitions
from marin_assets.plan.plan import Action, Kind, Planned, plan, refuse
from marin_assets.plan.prices import with_prices
from marin_assets.plan.reasons.causes import Causes, describe_causes
from marin_assets.plan.record_facts.facts import manifest_digest
from marin_assets.plan.record_facts.node_drift import DriftNow
from marin_assets.plan.requirements import missing_requirements_of
from marin_assets.plan.sites.inputs import external_names, mirrored_names
from marin_assets.plan.sites.needs import needs_of
from marin_assets.step.graph import Graph, Node
from marin_resources.drift.drift import Drift
from marin_resources.ray_tpu.fleet.choose import choose_site
from marin_resources.ray_tpu.fleet.fleet import Fleet, fleet_from_env
from marin_resources.ray_tpu.site import NoSiteError, Site
from marin_resources.storage.files import find_below
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.look import existing, look_in_bulk, mark_complete
from marin_resources.storage.manifest.largest_first import map_largest_first
from marin_resources.storage.output.control_files import Damage, find_damage_ahead
from marin_resources.storage.output.notes.collection import with_collected
from marin_resources.storage.output.store import LOOK_THREADS, Store
from marin_resources.storage.paths import is_local
from marin_resources.types.output import Observed, Output

EXACT_UP_TO = 300
"""Outputs that are read one by one. It takes some files of each."""


def prepare_plan(
    graph: Graph,
    store: Store,
    nodes: Sequence[Node],
    *,
    forced: Collection[Output] = (),
    rerun_failed: bool = True,
    exact_up_to: int = EXACT_UP_TO,
) -> list[Planned]:
    """The plan of `nodes`, inputs first, with reasons, drift, expected costs, and on a fleet the cluster of each.

    A partition is a node: see `Node.at`. Raises UnavailableError, and SettingError for a price that is no number.
    """
    complete = CompleteOutputs(store.prefix)
    planned = plan_with_drift(
        graph, store, nodes, complete, forced=forced, rerun_failed=rerun_failed, exact_up_to=exact_up_to
    )
    planned = with_reasons(planned, complete)
    planned = refuse(
        planned, missing_requirements_of((item.node for item in planned if item.action is Action.RUN), store.prefix)
    )
    fleet = fleet_from_env(None, store.prefix)
    return with_prices(planned if fleet is None else with_sites(planned, graph, store, fleet))


def plan_with_drift(
    graph: Graph,
    store: Store,
    nodes: Sequence[Node],
    complete: CompleteOutputs,
    *,
    forced: Collection[Output] = (),
    rerun_failed: bool = True,
    exact_up_to: int = EXACT_UP_TO,
) -> list[Planned]:
    """The plan of `nodes`, from one look at their outputs and inputs, with the drift of reused outputs."""
    looked = observe(graph, store, nodes, complete, exact_up_to)
    observed = with_lost_data(store, with_collected(store.prefix, looked))
    damage = _damage_ahead(store, nodes, observed)
    drift_now = DriftNow(graph, store)

    def drift(node: Node) -> tuple[Drift, ...]:
        digests = {label: manifest_digest(observed[output]) for label, output in node.inputs.items()}
        return drift_now.of(node, observed[node.output], digests)

    return plan(graph, observed, nodes, drift, damage.get, forced, rerun_failed)


def plan_again(graph: Graph, store: Store, nodes: Sequence[Node]) -> list[Planned]:
    """The plan of a few nodes, each read, with drift and without the reasons of runs."""
    return plan_with_drift(graph, store, nodes, CompleteOutputs(store.prefix), exact_up_to=len(graph) + len(nodes))


def with_reasons(planned: Sequence[Planned], complete: CompleteOutputs) -> list[Planned]:
    """The plan with the fields that changed since each step's earlier output, and with expected costs."""
    runs = [item for item in planned if item.action is Action.RUN]
    if not runs:
        return list(planned)
    new = [item.node for item in runs if item.kind is Kind.NEW and item.node.key is None]
    why = Causes(complete).of(new)
    expected = estimates([item.node for item in runs], complete)
    removed = _removed(runs, complete)
    explained = []
    for item in planned:
        if item.action is Action.RUN:
            item = replace(item, expected=expected.get(item.node.name))
        if (how := removed.get(item.node.output)) is not None:
            item = replace(item, kind=Kind.REMOVED, reason=f"it was complete, and {how}")
        elif (changed := why.get(item.node)) is not None:
            reason = "; ".join(filter(None, (describe_causes(changed.causes, item.node.name), item.made_from)))
            item = replace(item, kind=Kind.CHANGED, reason=reason, why=changed)
        explained.append(item)
    return explained


def _removed(runs: Sequence[Planned], complete: CompleteOutputs) -> dict[Output, str]:
    """The outputs that were complete by their markers, each with a phrase about its removal."""
    marks = {item.node.output: complete.mark_of(item.node.output) for item in runs if item.kind is Kind.NEW}
    paths = {
        item.node.output: item.observed.path
        for item in runs
        if (mark := marks.get(item.node.output)) is not None and mark.is_of(item.node.output)
    }
    stored = existing(paths.values())
    return {
        output: "was taken back since" if path in stored else "its folder was removed" for output, path in paths.items()
    }


def observe(
    graph: Graph, store: Store, nodes: Sequence[Node], complete: CompleteOutputs, exact_up_to: int = EXACT_UP_TO
) -> Mapping[Output, Observed]:
    """The state of the nodes' outputs, of their inputs, and of all steps of the graph without partitions. More than
    `exact_up_to` are listed by their markers. Raises UnavailableError."""
    beside = [node.output for node in graph if node.step.partitions is None]
    requested = [output for node in nodes for output in (*node.inputs.values(), node.output)]
    outputs = list(dict.fromkeys([*beside, *requested]))
    if len(outputs) <= exact_up_to:
        looked = store.look(outputs)
        mark_complete(store, complete, looked)
        return looked
    whole = look_in_bulk(store, (output for output in outputs if output.partition is None), complete)
    partitions = known_partitions(graph, store, nodes, complete)
    remaining = [output for output in outputs if output.partition is not None and output not in partitions]
    return {**whole, **partitions, **store.look(remaining)}


def _damage_ahead(
    store: Store, nodes: Sequence[Node], observed: Mapping[Output, Observed]
) -> dict[Node, Damage | None]:
    """The damage that a run would meet, of the outputs that were read file by file."""
    looked = [node for node in nodes if not observed[node.output].listed]

    def look_ahead(node: Node) -> Damage | None:
        return find_damage_ahead(observed[node.output], resumable=node.step.resumable)

    if is_local(store.prefix):  # threads would take longer to start
        damage = list(map(look_ahead, looked))
    else:
        damage = map_largest_first(look_ahead, looked, size=lambda _: 0, threads=LOOK_THREADS)
    return dict(zip(looked, damage, strict=True))


def with_sites(planned: Iterable[Planned], graph: Graph, store: Store, fleet: Fleet) -> list[Planned]:
    """The plan with the cluster of each step that runs, inputs first. A step that no cluster may compute is blocked.

    An input that is computed by the same plan is where its own step goes, and of a size that is not known yet.
    """
    sites: dict[Output, Site] = {}
    observed: dict[Output, Observed] = {}
    blocked: set[Output] = set()
    placed = []
    for item in planned:
        observed[item.node.output] = item.observed
        if item.action is Action.RUN:
            needs = next((label for label, output in item.node.inputs.items() if output in blocked), None)
            try:
                if needs is None:
                    item = replace(item, site=_site_of(item.node, graph, store, fleet, observed, sites))
                else:
                    item = replace(
                        item,
                        action=Action.BLOCKED,
                        kind=Kind.INPUT_BLOCKED,
                        reason=f"needs {needs!r}, which is blocked",
                    )
            except NoSiteError as error:
                item = replace(
                    item,
                    action=Action.BLOCKED,
                    kind=Kind.MISSING_REQUIREMENT,
                    reason=str(error),
                    missing_requirements=True,
                )
        if item.action is Action.BLOCKED:
            blocked.add(item.node.output)
        if item.site is not None:
            sites[item.node.output] = item.site
        placed.append(item)
    return placed


def _site_of(
    node: Node, graph: Graph, store: Store, fleet: Fleet, observed: dict[Output, Observed], sites: Mapping[Output, Site]
) -> Site:
    for output in node.inputs.values():
        if output not in observed and output not in sites:
            observed[output] = store.look([output])[output]
    inputs = {
        label: Observed(path=store.locate(output, sites[output].prefix)) if output in sites else observed[output]
        for label, output in node.inputs.items()
    }
    names = [*external_names(node), *mirrored_names(node)]
    places = {name: find_below(name, fleet.prefixes()) for name in names}
    external = {name: path for name, path in places.items() if path is not None}
    return choose_site(needs_of(node, graph, store, inputs, external), fleet)
