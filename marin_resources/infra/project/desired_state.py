"""All resources and rights that a project shall have, for the clusters of the catalogue, in the order of creation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.project.network import network
from marin_resources.infra.project.resource import Grant, Resource
from marin_resources.infra.project.rights import accounts, grants
from marin_resources.infra.project.stores import stores

APIS = ("cloudresourcemanager", "iam", "compute", "tpu", "iap", "secretmanager", "artifactregistry", "storage")
"""Google's services that the clusters and this software use."""


@dataclass(frozen=True, kw_only=True)
class WantedProject:
    """The services, resources and rights that one project shall have."""

    project: str
    apis: tuple[str, ...]
    resources: tuple[Resource, ...]
    grants: tuple[Grant, ...]


def wanted_project(clusters: Sequence[Cluster], operators: Sequence[str] = ()) -> WantedProject:
    """The expected state of the project of these clusters. Raises CatalogueError for clusters of several projects."""
    return WantedProject(
        project=clusters[0].project,
        apis=tuple(f"{api}.googleapis.com" for api in APIS),
        resources=tuple(_resources(clusters)),
        grants=tuple(grants(clusters, operators)),
    )


def _resources(clusters: Sequence[Cluster]) -> Iterator[Resource]:
    yield from network(clusters)
    yield from accounts(clusters)
    yield from stores(clusters)
