"""The network of the clusters: a subnetwork in each region, the firewall, the way out, and the addresses of heads.

Nothing comes in from the world. Google's own rule denies what no rule allows, and each rule here names its sources: the
clusters' machines by their tag, Google's Identity-Aware Proxy, which authenticates people, and the deployment by its
tag.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from marin_resources.clusters.cluster import CatalogueError, Cluster
from marin_resources.infra.project.resource import Resource, compute

CLUSTER_TAG, HEAD_TAG, DEPLOYMENT_TAG = "marin-ray", "marin-ray-head", "marin-dagster"
"""Tags of the machines of clusters, of the heads among them, and of the machines that Dagster runs on."""
IAP_RANGE = "35.235.240.0/20"
"""From which Identity-Aware Proxy forwards (cloud.google.com/iap/docs/using-tcp-forwarding)."""
MTU = 8896
"""The most that Google's networks take, and what slices that talk to slices are fast with
(cloud.google.com/tpu/docs/multislice-introduction)."""
RANGE_BITS = 16
"""A subnetwork has 65,536 addresses, the head's among them."""


def network(clusters: Sequence[Cluster]) -> Iterator[Resource]:
    """The resources of the network, in the order of their creation. Raises CatalogueError."""
    first = clusters[0]
    for other in clusters[1:]:
        if (other.project, other.network) != (first.project, first.network):
            raise CatalogueError(
                f"[clusters.{other.name}]: project and network are {other.project!r} and {other.network!r}, and those "
                f"of {first.name!r} {first.project!r} and {first.network!r}. Make a catalogue for each project."
            )
    project, name = first.project, first.network
    yield _resource(
        "network", project, ("global", "networks"), name, autoCreateSubnetworks=False, mtu=MTU,
        routingConfig={"routingMode": "REGIONAL"},
    )  # fmt: skip
    ranges = _ranges(clusters)
    for cluster in _one_a_region(clusters):
        yield _resource(
            "subnetwork", project, ("regions", cluster.region, "subnetworks"), cluster.subnetwork,
            network=_network(cluster), ipCidrRange=str(ranges[cluster.region]), privateIpGoogleAccess=True,
            region=cluster.region,
        )  # fmt: skip
    yield from firewall(first)
    for cluster in _one_a_region(clusters):
        yield _way_out(cluster)
    for cluster in clusters:
        yield _resource(
            "address", project, ("regions", cluster.region, "addresses"), f"{cluster.name}-head",
            addressType="INTERNAL", purpose="GCE_ENDPOINT", address=cluster.head_ip, subnetwork=cluster.subnetwork_path,
        )  # fmt: skip


def firewall(cluster: Cluster) -> Iterator[Resource]:
    """The rules of the network. Each states the sources, the target machines and the ports."""
    yield _rule(
        cluster, "cluster", "Ray's processes talk to each other on many ports.",
        [{"IPProtocol": protocol} for protocol in ("tcp", "udp", "icmp")], sourceTags=[CLUSTER_TAG],
        targetTags=[CLUSTER_TAG],
    )  # fmt: skip
    yield _rule(
        cluster, "ssh-by-iap", "Shells, and the dashboard, for those whom Identity-Aware Proxy lets through.",
        [{"IPProtocol": "tcp", "ports": ["22"]}], sourceRanges=[IAP_RANGE], targetTags=[CLUSTER_TAG],
    )  # fmt: skip
    yield _rule(
        cluster, "dashboard", "Dagster submits jobs, with the token.",
        [{"IPProtocol": "tcp", "ports": ["8265"]}], sourceTags=[DEPLOYMENT_TAG], targetTags=[HEAD_TAG],
    )  # fmt: skip


def _rule(
    cluster: Cluster, name: str, why: str, allowed: list[dict[str, Any]], **sources_and_targets: list[str]
) -> Resource:
    return _resource(
        "firewall", cluster.project, ("global", "firewalls"), f"{cluster.network}-{name}", description=why,
        network=_network(cluster), direction="INGRESS", allowed=allowed, **sources_and_targets,
    )  # fmt: skip


def _way_out(cluster: Cluster) -> Resource:
    """NAT, by which packages and data sets are fetched from the world; no machine is reachable by it."""
    nat = {
        "name": f"{cluster.network}-nat",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
        "subnetworks": [{"name": cluster.subnetwork_path, "sourceIpRangesToNat": ["ALL_IP_RANGES"]}],
    }
    where = ("regions", cluster.region, "routers")
    return _resource(
        "router", cluster.project, where, f"{cluster.network}-{cluster.region}", network=_network(cluster), nats=[nat]
    )


def _ranges(clusters: Iterable[Cluster]) -> dict[str, ipaddress.IPv4Network]:
    """Region -> the range of its subnetwork, which has the addresses of its heads."""
    ranges: dict[str, ipaddress.IPv4Network] = {}
    for cluster in clusters:
        own = ipaddress.IPv4Network(f"{cluster.head_ip}/{RANGE_BITS}", strict=False)
        for region, taken in ranges.items():
            if (region == cluster.region) != (own == taken):
                raise CatalogueError(
                    f"[clusters.{cluster.name}]: head_ip {cluster.head_ip} is in {own}, and the subnetwork of {region} "
                    f"is {taken}. Heads of one region are in one range of /{RANGE_BITS}, and no other region has it."
                )
        ranges[cluster.region] = own
    return ranges


def _one_a_region(clusters: Iterable[Cluster]) -> list[Cluster]:
    return list({cluster.region: cluster for cluster in reversed(list(clusters))}.values())[::-1]


def _network(cluster: Cluster) -> str:
    return f"projects/{cluster.project}/global/networks/{cluster.network}"


def _resource(kind: str, project: str, where: tuple[str, ...], name: str, **body: Any) -> Resource:
    collection = compute(project, *where)
    return Resource(
        kind=kind, name=name, url=f"{collection}/{name}", collection=collection, body={"name": name, **body}
    )
