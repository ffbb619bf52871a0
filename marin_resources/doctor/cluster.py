"""The Ray cluster: its settings, its token, its version, its nodes, and the size of the code that is shipped to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from importlib import metadata
from urllib.parse import urlsplit

from marin_resources.configuration.settings import default_prefix, project_root
from marin_resources.doctor.finding import Finding, ok, warning, wrong
from marin_resources.ray_tpu.cluster.api.jobs_api import RayVersion, Resources, connect
from marin_resources.ray_tpu.cluster.api.token import find_token
from marin_resources.ray_tpu.cluster.code.package import package_of
from marin_resources.ray_tpu.cluster.errors import ClusterError, UnreachableError
from marin_resources.ray_tpu.cluster.settings import ClusterSettings, CodeMode
from marin_resources.ray_tpu.cluster.settings_from_env import each_from_env
from marin_resources.ray_tpu.fleet.fleet import Fleet, fleet_from_env
from marin_resources.storage.transfer.locations import BucketUnreadableError, is_in, location_of

SUBJECT = "cluster"
TOKEN = "token"
CODE = "code"
REGION = "region"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def look() -> Iterator[Finding]:
    """Raises SettingError for settings that cannot be read, and TokenError."""
    clusters = each_from_env()
    if not clusters:
        yield ok(SUBJECT, f"none: steps run on this machine, on {os.cpu_count()} CPUs (MARIN_CLUSTER is not set)")
    else:
        yield from _regions(fleet_from_env(None, default_prefix()))
    for settings in clusters:
        yield from _look_at(settings)
    if clusters and clusters[0].code is CodeMode.SHIP:
        package = package_of(clusters[0].working_dir or str(project_root()))
        yield ok(CODE, f"{package.root}: {len(package.files)} files, {len(package.data) / 1e6:.1f} MB packed")


def _regions(fleet: Fleet | None) -> Iterator[Finding]:
    """Whether each bucket of a fleet is where its clusters are."""
    for member in fleet.members if fleet is not None else ():
        bucket = member.cluster.prefix.removeprefix("gs://").partition("/")[0]
        try:
            location = location_of(bucket)
        except BucketUnreadableError as error:
            yield warning(REGION, f"Where the bucket {bucket!r} of {member.name!r} is cannot be read ({error}).")
            continue
        if is_in(member.cluster.region, location):
            yield ok(REGION, f"{member.name}: {bucket} is in {location}")
        else:
            yield wrong(
                REGION,
                f"The bucket {bucket!r} is in {location}, and the cluster {member.name!r} in {member.cluster.region}: "
                "all that its steps read and write leaves the region. Correct prefix or zone in the catalogue.",
            )


def _look_at(settings: ClusterSettings) -> Iterator[Finding]:
    yield _token(settings)
    try:
        version, nodes = asyncio.run(_read(settings))
    except (ClusterError, UnreachableError) as error:
        yield wrong(SUBJECT, _with_advice(str(error)))
        return
    yield from _version(settings, version)
    yield _nodes(settings, nodes)


def _with_advice(sentence: str) -> str:
    """The sentence with advice for an address that does not answer, which may be a wrong one."""
    away = any(phrase in sentence for phrase in ("cannot be connected to", "did not answer"))
    return f"{sentence} Start the cluster, or correct MARIN_CLUSTER." if away else sentence


def _token(settings: ClusterSettings) -> Finding:
    token = find_token(settings)
    if token is not None:
        return ok(TOKEN, f"from {token.source}")
    if urlsplit(settings.address).hostname in LOOPBACK:
        return ok(TOKEN, "none, and the cluster is on this machine")
    return warning(
        TOKEN,
        f"None is sent to {settings.address}. If it needs none, whoever reaches it runs code there: start it with "
        "RAY_AUTH_MODE=token.",
    )


async def _read(settings: ClusterSettings) -> tuple[RayVersion, Resources]:
    async with connect(settings) as api:
        return await api.version(), await api.node_resources()


def _version(settings: ClusterSettings, version: RayVersion) -> Iterator[Finding]:
    ours = metadata.version("ray")
    if version.ray_version != ours:
        yield warning(
            SUBJECT,
            f"{settings.address} runs Ray {version.ray_version}, and Ray {ours} is installed here: steps are tested "
            "with one version on both sides. Install the cluster's.",
        )


def _nodes(settings: ClusterSettings, nodes: Resources) -> Finding:
    cpus = sum(node.get("CPU", 0) for node in nodes)
    if not cpus and not settings.node_types:
        return wrong(
            SUBJECT,
            f"{settings.address} answers, and none of its {len(nodes)} nodes has a CPU for a step. Start workers, or "
            "declare what its autoscaler may add in MARIN_CLUSTER_NODE_TYPES.",
        )
    gpus, chips = (sum(node.get(kind, 0) for node in nodes) for kind in ("GPU", "TPU"))
    devices = "".join(f", {count:g} {device}" for count, device in ((gpus, "GPUs"), (chips, "TPU chips")) if count)
    return ok(SUBJECT, f"{settings.address}: {len(nodes)} nodes with {cpus:g} CPUs{devices}")
