"""The clusters of a deployment, their regions, and the home prefix.

    MARIN_CLUSTER   us-central2,us-east5        names in the catalogue
    MARIN_PREFIX    gs://marin-us-central2      the home

The home has the lease, the status, the record and the attempts of every output, so that two regions never compute one.
The data of an output are below the prefix of the region that computes it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from marin_resources.clusters.cluster import Cluster
from marin_resources.configuration.settings import SettingError, normalize_prefix
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.cluster.settings_from_env import cluster_names, named_cluster, settings_from_env
from marin_resources.storage.output.store import Store
from marin_resources.storage.transfer.regions import (
    PREFIXES,
    PRICES,
    REGION,
    Region,
    Regions,
    read_declaration,
)

HOME = "home"
"""Name of the region of a home that no cluster is in."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One cluster of a fleet."""

    cluster: Cluster
    settings: ClusterSettings

    @property
    def name(self) -> str:
        return self.cluster.name


@dataclass(frozen=True)
class Fleet:
    """The clusters in the order in which they are named, and the home prefix."""

    members: tuple[Member, ...]
    home: str
    declaration: str
    """The regions, as MARIN_MIRROR_PREFIXES has them."""

    def regions(self, local: str) -> Regions:
        """The regions as a machine in the region `local` sees them, with the prices to it."""
        return read_declaration(self.declaration, local, os.environ.get(PRICES, ""), own_prefix=self.home)

    def region_of(self, path: str) -> str | None:
        """The region that has this path below its prefix; None if none has."""
        held = self.regions(self.members[0].cluster.region).holding(path)
        return None if held is None else held[0].name

    def prefixes(self) -> list[str]:
        """The prefixes of all regions, the home first."""
        declared = self.regions(self.members[0].cluster.region).all
        return list(dict.fromkeys([self.home, *(region.prefix for region in declared)]))

    def member(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)


def fleet_from_env(cluster: str | None, prefix: str) -> Fleet | None:
    """The fleet of `cluster`, else of MARIN_CLUSTER, with the home `prefix`; None if that names no cluster of the
    catalogue. Raises SettingError."""
    names = cluster_names(cluster)
    if not names:
        return None
    clusters = [named_cluster(name, cluster) for name in names]
    home = _home(normalize_prefix(prefix), clusters)
    declaration = _declaration(clusters, home)
    fleet = Fleet(tuple(_member(entry, declaration) for entry in clusters), home, declaration)
    fleet.regions(clusters[0].region)  # its sentence about a wrong declaration comes now
    return fleet


def store_at(prefix: str, cluster: str | None = None) -> Store:
    """The store of a prefix; at a fleet's home, outputs that are complete in its regions count. Raises SettingError."""
    fleet = fleet_from_env(cluster, prefix)
    return Store(prefix, fleet.prefixes() if fleet is not None else ())


def _member(cluster: Cluster, declaration: str) -> Member:
    settings = settings_from_env(cluster.name)
    assert settings is not None
    variables = {PREFIXES: declaration, REGION: cluster.region}
    return Member(cluster=cluster, settings=replace(settings, variables={**settings.variables, **variables}))


def _home(prefix: str, clusters: Sequence[Cluster]) -> str:
    for cluster in clusters:
        if prefix.startswith(f"{cluster.prefix}/"):
            raise SettingError(
                f"MARIN_PREFIX is {prefix!r}, which is inside {cluster.prefix!r}, the prefix of the cluster "
                f"{cluster.name!r}. Set it to that prefix, or give the cluster this one in the catalogue."
            )
    if prefix.startswith("gs://"):
        return prefix
    raise SettingError(
        f"MARIN_CLUSTER is {','.join(cluster.name for cluster in clusters)!r}, and MARIN_PREFIX {prefix!r}, which "
        f"those machines do not see. Set it to the home prefix, such as {clusters[0].prefix!r}."
    )


def _declaration(clusters: Sequence[Cluster], home: str) -> str:
    """The regions of the clusters, those of MARIN_MIRROR_PREFIXES, and the home."""
    regions = {cluster.region: Region(name=cluster.region, prefix=cluster.prefix) for cluster in clusters}
    for item in filter(None, os.environ.get(PREFIXES, "").split(",")):
        name, _, prefix = (part.strip() for part in item.partition("="))
        prefixes = {region.prefix for region in regions.values()}
        if name not in regions and prefix.rstrip("/") not in prefixes:
            regions[name] = Region(name=name, prefix=prefix)
    if home not in [region.prefix for region in regions.values()]:
        regions[HOME] = Region(name=HOME, prefix=home)
    return ",".join(f"{region.name}={region.prefix}" for region in regions.values())
