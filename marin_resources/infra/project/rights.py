"""Service accounts, and the rights of each: the least that it needs, on the one resource where it needs it.

`RIGHTS` is the table of docs/how-to/from-an-empty-project.md.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.project.resource import Grant, Resource
from marin_resources.infra.project.stores import REGISTRY, SECRETS, STORAGE, buckets, registries

IAM = "https://iam.googleapis.com/v1"
PROJECTS = "https://cloudresourcemanager.googleapis.com/v1/projects"


class Who(enum.StrEnum):
    HEAD = "heads"
    WORKER = "workers and slices"
    DEPLOYMENT = "Dagster"
    OPERATOR = "operators"


class Where(enum.StrEnum):
    BUCKETS = "each bucket"
    SECRET = "the token's secret"
    IMAGES = "the images"
    WORKERS = "the workers' account"
    PROJECT = "the project"


@dataclass(frozen=True, kw_only=True)
class Right:
    """One line of the table."""

    who: Who
    role: str
    where: Where
    why: str


def _right(holder: Who, role: str, where: Where, why: str) -> Right:
    return Right(who=holder, role=f"roles/{role}", where=where, why=why)


RIGHTS = (
    _right(Who.HEAD, "storage.objectUser", Where.BUCKETS, "drivers of jobs claim and publish outputs"),
    _right(Who.HEAD, "storage.legacyBucketReader", Where.BUCKETS, "a bucket's region is read, and its objects listed"),
    _right(Who.HEAD, "secretmanager.secretAccessor", Where.SECRET, "the token, when the machine starts"),
    _right(Who.HEAD, "artifactregistry.reader", Where.IMAGES, "the image is pulled"),
    _right(Who.HEAD, "compute.instanceAdmin.v1", Where.PROJECT, "Ray's autoscaler adds and removes workers"),
    _right(Who.HEAD, "iam.serviceAccountUser", Where.WORKERS, "a new worker gets that account"),
    _right(Who.WORKER, "storage.objectUser", Where.BUCKETS, "steps read inputs and write outputs"),
    _right(
        Who.WORKER, "storage.legacyBucketReader", Where.BUCKETS, "a bucket's region is read, and its objects listed"
    ),
    _right(Who.WORKER, "secretmanager.secretAccessor", Where.SECRET, "the token, whenever the machine boots"),
    _right(Who.WORKER, "artifactregistry.reader", Where.IMAGES, "the image is pulled"),
    _right(Who.DEPLOYMENT, "storage.objectUser", Where.BUCKETS, "notes, plans, logs of runs, files of wanted slices"),
    _right(Who.DEPLOYMENT, "storage.legacyBucketReader", Where.BUCKETS, "listings, and `marin doctor`"),
    _right(Who.DEPLOYMENT, "secretmanager.secretAccessor", Where.SECRET, "the token of each request to a head"),
    _right(Who.DEPLOYMENT, "tpu.admin", Where.PROJECT, "`marin cluster monitor` requests and deletes slices"),
    _right(Who.DEPLOYMENT, "iam.serviceAccountUser", Where.WORKERS, "a new slice gets that account"),
    _right(Who.OPERATOR, "iap.tunnelResourceAccessor", Where.PROJECT, "shells and dashboards by Identity-Aware Proxy"),
    _right(
        Who.OPERATOR,
        "tpu.admin",
        Where.PROJECT,
        "`marin cluster add-worker`, `clean`, `ssh` to slices",
    ),
    _right(Who.OPERATOR, "iam.serviceAccountUser", Where.WORKERS, "a new slice gets that account"),
    _right(Who.OPERATOR, "secretmanager.secretAccessor", Where.SECRET, "`marin cluster auth`"),
)


def accounts(clusters: Sequence[Cluster]) -> Iterator[Resource]:
    """The service accounts. They have no key: machines run as them."""
    first = clusters[0]
    collection = f"{IAM}/projects/{first.project}/serviceAccounts"
    for holder in (Who.HEAD, Who.WORKER, Who.DEPLOYMENT):
        for name in dict.fromkeys(_account(holder, cluster) for cluster in clusters):
            yield Resource(
                kind="service account",
                name=name,
                url=f"{collection}/{first.email(name)}",
                collection=collection,
                body={"accountId": name, "serviceAccount": {"displayName": f"Marin: {holder}"}},
                unread=("accountId", "serviceAccount"),
            )


def grants(clusters: Sequence[Cluster], operators: Sequence[str] = ()) -> list[Grant]:
    """All rights. `operators`: members such as "group:marin-operators@example.org"."""
    unique: dict[Grant, None] = {}
    for right in RIGHTS:
        for cluster in clusters:
            members = operators if right.who is Who.OPERATOR else (_member(cluster, _account(right.who, cluster)),)
            for member in members:
                for grant in _grants(right, cluster, clusters, member):
                    unique[grant] = None
    return list(unique)


def _grants(right: Right, cluster: Cluster, clusters: Sequence[Cluster], member: str) -> Iterator[Grant]:
    role, project = right.role, cluster.project
    match right.where:
        case Where.BUCKETS:
            for bucket, _, _ in buckets(clusters):
                url = f"{STORAGE}/{bucket}/iam"
                on = f"bucket {bucket}"
                yield Grant(role=role, member=member, on=on, read=("GET", url), write=("PUT", url), wrapped=False)
        case Where.SECRET:
            url = f"{SECRETS}/{cluster.token_resource}"
            yield _grant(role, member, f"secret {cluster.token_secret}", url, "GET")
        case Where.IMAGES:
            for region, repository in registries(clusters):
                url = f"{REGISTRY}/projects/{project}/locations/{region}/repositories/{repository}"
                yield _grant(role, member, f"repository {region}/{repository}", url, "GET")
        case Where.WORKERS:
            url = f"{IAM}/projects/{project}/serviceAccounts/{cluster.email(cluster.worker_account)}"
            yield _grant(role, member, f"service account {cluster.worker_account}", url, "POST")
        case Where.PROJECT:
            yield _grant(role, member, f"project {project}", f"{PROJECTS}/{project}", "POST")


def _grant(role: str, member: str, on: str, url: str, verb: str) -> Grant:
    read, write = (verb, f"{url}:getIamPolicy"), ("POST", f"{url}:setIamPolicy")
    return Grant(role=role, member=member, on=on, read=read, write=write)


def _account(holder: Who, cluster: Cluster) -> str:
    names = {Who.HEAD: cluster.head_account, Who.WORKER: cluster.worker_account}
    return names.get(holder, cluster.deployment_account)


def _member(cluster: Cluster, account: str) -> str:
    return f"serviceAccount:{cluster.email(account)}"
