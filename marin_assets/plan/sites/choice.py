"""The clusters of a plan's steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from marin_assets.plan.plan import Action, Kind, Planned
from marin_assets.plan.sites.inputs import external_names, mirrored_names
from marin_assets.plan.sites.needs import needs_of
from marin_assets.step.graph import Graph, Node
from marin_resources.ray_tpu.fleet.choose import choose_site
from marin_resources.ray_tpu.fleet.fleet import Fleet
from marin_resources.ray_tpu.site import NoSiteError, Site
from marin_resources.storage.files import find_below
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed, Output


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
