"""Choose the cluster of a fleet that a step goes to.

    1  it has what the step requests: slices of that type, so many of them; CPUs and memory
       and it is in the region of each bucket that the config names by a gs:// URL
    2  an attempt before has left files there that the step resumes from
    3  the steps that read its output can run there, unless its inputs cost a dollar more to move there
    4  the inputs cost least to move there; less than a cent is nothing
    5  its chips, or CPUs, cost least
    6  the order in which the clusters are named

What moves is charged to the step's budget. If that is too small for the best cluster, the step is refused with sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from marin_resources.clusters.cluster import Cluster
from marin_resources.hardware.catalogue import find_generation
from marin_resources.hardware.resources import Resources, slice_type
from marin_resources.ray_tpu.fleet.fleet import Fleet, Member
from marin_resources.ray_tpu.requirements import MissingRequirement
from marin_resources.ray_tpu.site import Move, NoSiteError, PlacementRequest, ReaderNeeds, Site
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.transfer.account import GB_BYTES
from marin_resources.storage.transfer.foreign_buckets import foreign_to, refusal
from marin_resources.storage.usage.prices import declared_prices

NAMED = 3
NEAR_DOLLARS = 1.0
"""So much more may the inputs cost to move to where the readers can run. The output would have to move there, and its
size is not known yet."""


def choose_site(needs: PlacementRequest, fleet: Fleet, at: str | None = None) -> Site:
    """The cluster for the step. `at`: the name of the one that has its job already, which is not chosen again. Raises
    NoSiteError."""
    if at is not None:
        return replace(_site(needs, fleet, fleet.member(at)), why="where its job is")
    able = [member for member in fleet.members if may_hold(needs.resources, member.cluster)]
    if not able:
        raise NoSiteError(f"Step {needs.step!r} {missing_site(needs.resources, fleet).phrase}")
    able = _in_region_of(needs, able, fleet)
    sites = [_site(needs, fleet, member) for member in able]
    resumed = [site for site in sites if needs.earlier is not None and needs.earlier.startswith(f"{site.prefix}/")]
    among = resumed or sites
    order = {member.name: (_dollars(needs.resources, member.cluster), i) for i, member in enumerate(able)}
    cost = {site.cluster: (round(site.dollars, 2), *order[site.cluster]) for site in among}
    cheapest = min(among, key=lambda site: cost[site.cluster])
    near = _near_readers(needs, [site for site in among if site.dollars - cheapest.dollars < NEAR_DOLLARS], able)
    best = min(near, key=lambda site: cost[site.cluster], default=cheapest)
    _require_budget(needs, best, sites)
    why = _why(needs, best, among, sites, bool(resumed), fleet)
    return replace(best, why=why if best is cheapest else "where its readers can run")


def _near_readers(needs: PlacementRequest, sites: Sequence[Site], able: Sequence[Member]) -> list[Site]:
    """Those of the sites where the readers can run, as many of them as can in one place, the nearest readers first."""
    clusters = {member.name: member.cluster for member in able}
    remaining = [site for site in sites if site.bytes <= needs.budget_bytes]
    for reader in needs.readers:
        readable = [site for site in remaining if _can_read(reader, clusters[site.cluster])]
        remaining = readable or remaining
    return remaining


def _can_read(reader: ReaderNeeds, cluster: Cluster) -> bool:
    return may_hold(reader.resources, cluster) and not foreign_to(cluster.region, reader.urls)


def missing_site(resources: Resources, fleet: Fleet) -> MissingRequirement:
    """That no cluster has what is requested."""
    has = "; ".join(f"{member.name} has {_slices(member.cluster)}" for member in fleet.members[:NAMED])
    more = f"; and {len(fleet.members) - NAMED} more clusters" if len(fleet.members) > NAMED else ""
    return MissingRequirement(
        verb="requests",
        what=f"{resources.describe()}, which no cluster of MARIN_CLUSTER has: {has}{more}",
        remedy="Request what one of them has, add slices to its entry in the catalogue, or name another cluster.",
    )


def may_hold(resources: Resources, cluster: Cluster) -> bool:
    """Whether the cluster has, by the catalogue, what is requested. Slices of its generation that the catalogue does
    not list may have been added by hand: the cluster's nodes show it."""
    if resources.gpu is not None:
        return False
    if resources.tpu is not None:
        requested = slice_type(resources.tpu.kind)
        listed = sum(group.count for group in cluster.slices if group.slice_type.kind == requested.kind)
        if listed:
            return listed >= resources.slices
        return find_generation(cluster.generation) == requested.generation and cluster.zone in requested.zones
    return resources.cpus <= cluster.worker_cpus and (resources.memory_bytes or 0) <= cluster.worker_memory_bytes


def _slices(cluster: Cluster) -> str:
    cpus = f"{cluster.worker_cpus} CPUs a worker"
    return ", ".join([*(f"{group.count} of {group.type}" for group in cluster.slices), cpus])


def _in_region_of(needs: PlacementRequest, able: Sequence[Member], fleet: Fleet) -> list[Member]:
    """The clusters in whose region all buckets are that the config names, and those of inputs that no region has below
    its prefix: such an input was adopted, and is read where it is. Raises NoSiteError."""
    read = (path for name, path in needs.places.items() if name in needs.external and "://" in path)
    urls = [*needs.urls, *(path for path in read if fleet.region_of(path) is None)]
    foreign = {member.name: foreign_to(member.cluster.region, urls) for member in able}
    near = [member for member in able if not foreign[member.name]]
    if near:
        return near
    first = able[0]
    among = f" or {' or '.join(member.name for member in able[1:NAMED])}" if len(able) > 1 else ""
    raise NoSiteError(refusal(needs.step, f"{first.name} in {first.cluster.region}{among}", foreign[first.name]))


def _site(needs: PlacementRequest, fleet: Fleet, member: Member) -> Site:
    region, prefix = member.cluster.region, member.cluster.prefix
    return Site(cluster=member.name, region=region, prefix=prefix, why="", moves=tuple(_moves(needs, fleet, region)))


def _moves(needs: PlacementRequest, fleet: Fleet, region: str) -> list[Move]:
    regions = fleet.regions(region)
    moves = []
    for label, path in needs.places.items():
        held = regions.holding(path)
        if held is None or held[0] == regions.local:
            continue
        size_bytes = needs.size_of(label)
        dollars = regions.dollars(held[0], size_bytes or 0)
        is_output = label not in needs.external
        moves.append(
            Move(
                what=label,
                relative=held[1],
                source=held[0].name,
                bytes=size_bytes,
                dollars=dollars,
                is_output=is_output,
            )
        )
    return moves


def _dollars(resources: Resources, cluster: Cluster) -> float:
    """Dollars for an hour of the step's devices, or CPUs, on the cluster; infinite without a price."""
    if resources.tpu is None:
        return math.inf if cluster.cpu_dollars is None else cluster.cpu_dollars * resources.cpus
    chip = cluster.chip_dollars
    if chip is None:
        price = declared_prices().of_pool(resources.pool or "")
        chip = math.inf if price is None else price.dollars
    return chip * resources.devices


def _why(
    needs: PlacementRequest, best: Site, among: Sequence[Site], all_sites: Sequence[Site], resumed: bool, fleet: Fleet
) -> str:
    device = f"TPU {needs.resources.tpu.kind}" if needs.resources.tpu is not None else "its resources"
    if len(all_sites) == 1:
        return "the only cluster" if len(fleet.members) == 1 else f"the only cluster with {device}"
    if resumed:
        return "where an attempt before has left its files"
    others = [site for site in among if site is not best]
    if any(round(site.dollars, 2) > round(best.dollars, 2) for site in others):
        return "where its inputs are" if not best.moves else "where its inputs cost least to move"
    prices = {site.cluster: _dollars(needs.resources, fleet.member(site.cluster).cluster) for site in among}
    if prices[best.cluster] < max(prices.values()):
        return f"where it costs least (${prices[best.cluster]:,.2f} an hour)"
    return f"the first of {', '.join(site.cluster for site in among)}"


def _require_budget(needs: PlacementRequest, best: Site, sites: Sequence[Site]) -> None:
    if best.bytes <= needs.budget_bytes:
        return
    largest = sorted(best.moves, key=lambda move: -(move.bytes or 0))
    listed = ", ".join(
        f"{move.what!r} ({readable_bytes(move.bytes or 0)}, in {move.source})" for move in largest[:NAMED]
    )
    more = f" and {len(largest) - NAMED} more" if len(largest) > NAMED else ""
    regions = sorted({site.region for site in sites if site.bytes <= needs.budget_bytes})
    elsewhere = f", or run it in {' or '.join(regions)}" if regions else ""
    raise NoSiteError(
        f"Step {needs.step!r} would go to {best.cluster} in {best.region} and needs {listed}{more}: "
        f"{readable_bytes(best.bytes)} (${best.dollars:,.2f}), and its mirror budget is "
        f"{readable_bytes(needs.budget_bytes)}. Read an input by mirrored(…, "
        f"budget_gb={math.ceil(best.bytes / GB_BYTES)}){elsewhere}, or give the cluster of the inputs' region what the "
        "step requests."
    )
