"""The stores of the clusters: a bucket in each region, the images, and the secret with the token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.project.resource import Resource

STORAGE = "https://storage.googleapis.com/storage/v1/b"
REGISTRY = "https://artifactregistry.googleapis.com/v1"
SECRETS = "https://secretmanager.googleapis.com/v1"
TEMPORARY_DAYS = (1, 7, 14, 30)
"""Objects below `.marin/temporary/ttl=<days>d/` of a prefix are deleted so many days after they were written."""
KEPT_IMAGES = 10
"""The newest of each image, and all that are tagged."""
UNTAGGED_SECONDS = 30 * 86_400
OLD_VERSION_DAYS = 7


def stores(clusters: Sequence[Cluster]) -> Iterator[Resource]:
    """Buckets, registries and secrets of the clusters, each once."""
    for bucket, region, keys in buckets(clusters):
        yield _bucket(clusters[0].project, bucket, region, keys)
    for region, repository in registries(clusters):
        yield _registry(clusters[0].project, region, repository)
    for name in dict.fromkeys(cluster.token_secret for cluster in clusters):
        collection = f"{SECRETS}/projects/{clusters[0].project}/secrets"
        yield Resource(
            kind="secret",
            name=name,
            url=f"{collection}/{name}",
            collection=collection,
            query={"secretId": name},
            body={"replication": {"automatic": {}}},
        )


def buckets(clusters: Sequence[Cluster]) -> list[tuple[str, str, tuple[str, ...]]]:
    """(bucket, region, keys of the prefixes in it), each bucket once."""
    keys_of_bucket: dict[tuple[str, str], dict[str, None]] = {}
    for cluster in clusters:
        bucket, _, key = cluster.prefix.removeprefix("gs://").partition("/")
        keys_of_bucket.setdefault((bucket, cluster.region), {})[key] = None
    return [(bucket, region, tuple(keys)) for (bucket, region), keys in keys_of_bucket.items()]


def registries(clusters: Sequence[Cluster]) -> list[tuple[str, str]]:
    """(region, repository) of the images in Artifact Registry, each once; images elsewhere have none."""
    unique: dict[tuple[str, str], None] = {}
    for cluster in clusters:
        host, _, path = cluster.image_url.partition("/")
        parts = path.split("/")
        if host == f"{cluster.region}-docker.pkg.dev" and parts[0] == cluster.project and len(parts) > 2:
            unique[cluster.region, parts[1]] = None
    return list(unique)


def _bucket(project: str, name: str, region: str, keys: tuple[str, ...]) -> Resource:
    return Resource(
        kind="bucket",
        name=name,
        url=f"{STORAGE}/{name}",
        collection=STORAGE,
        query={"project": project},
        body={
            "name": name,
            "location": region.upper(),
            # no object is public, whatever rights it has itself, and rights are the bucket's alone
            "iamConfiguration": {
                "publicAccessPrevention": "enforced",
                "uniformBucketLevelAccess": {"enabled": True},
            },
            "lifecycle": {"rule": _lifecycle(keys)},
        },
    )


def _lifecycle(keys: tuple[str, ...]) -> list[dict[str, Any]]:
    roots = [f"{key}/.marin/temporary" if key else ".marin/temporary" for key in keys]
    temporary = [
        {
            "action": {"type": "Delete"},
            "condition": {"age": days, "matchesPrefix": [f"{root}/ttl={days}d/" for root in roots]},
        }
        for days in TEMPORARY_DAYS
    ]
    broken = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}}
    replaced = {
        "action": {"type": "Delete"},
        "condition": {"daysSinceNoncurrentTime": OLD_VERSION_DAYS, "isLive": False},
    }
    return [*temporary, broken, replaced]


def _registry(project: str, region: str, repository: str) -> Resource:
    collection = f"{REGISTRY}/projects/{project}/locations/{region}/repositories"
    return Resource(
        kind="repository",
        name=repository,
        url=f"{collection}/{repository}",
        collection=collection,
        query={"repositoryId": repository},
        body={
            "format": "DOCKER",
            "cleanupPolicies": {
                "keep-tagged": {"id": "keep-tagged", "action": "KEEP", "condition": {"tagState": "TAGGED"}},
                "keep-newest": {
                    "id": "keep-newest",
                    "action": "KEEP",
                    "mostRecentVersions": {"keepCount": KEPT_IMAGES},
                },
                "delete-old": {
                    "id": "delete-old",
                    "action": "DELETE",
                    "condition": {"tagState": "UNTAGGED", "olderThan": f"{UNTAGGED_SECONDS}s"},
                },
            },
        },
    )
