"""Check a cluster of the catalogue: each key by itself, and keys against one another. A sentence names file and key."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marin_resources.clusters.cluster import (
    CAPACITIES,
    MACHINE,
    CatalogueError,
    Cluster,
    Slices,
    find_slice_type_or_raise,
)
from marin_resources.hardware.catalogue import find_generation

NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
"""Name of a cluster. Google's names have 63 characters, and Ray and `Slot.name` append up to 23 to ours."""
ZONE = re.compile(r"([a-z]+-[a-z]+[0-9]+)-[a-z]")
PROJECT = re.compile(r"[a-z][-a-z0-9]{4,28}[a-z0-9]")
IMAGE_FIELDS = ("region", "project", "tag")


def check_keys(where: str, given: Mapping[str, Any], kind: type, own: frozenset[str] | set[str] = frozenset()) -> None:
    """Each key is known and has a value of its type, and those without a default exist."""
    fields = {field.name: field for field in dataclasses.fields(kind) if field.name not in own}
    for key, value in given.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            meant = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(fields)}."
            raise CatalogueError(f"{where}: {key!r} is no key. {meant}")
        if key != "slices" and not _is_of_type(value, str(fields[key].type)):
            raise CatalogueError(f"{where}: {key} is {value!r}, expected {WORDS[str(fields[key].type)]}.")
    for key, field in fields.items():
        if key not in given and field.default is dataclasses.MISSING:
            raise CatalogueError(
                f"{where}: {key} is missing. Set it there, or before the first cluster for all of them."
            )


WORDS = {
    "str": "a text that is not empty",
    "int": "a whole number above 0",
    "float": "a number",
    "float | None": "dollars",
    "bool": "true or false",
}


def _is_of_type(value: Any, kind: str) -> bool:
    if kind == "bool":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind == "int":
        return isinstance(value, int) and value > 0
    if kind == "float":
        return isinstance(value, int | float)
    if kind == "float | None":
        return isinstance(value, int | float) and 0 <= value < math.inf
    return isinstance(value, str) and bool(value.strip())


def read_slices(where: str, fields: Any) -> Slices:
    where = f"{where}: slices"
    if not isinstance(fields, dict):
        raise CatalogueError(f'{where}: got {fields!r}, expected a table such as {{ type = "v5p-8", count = 4 }}.')
    check_keys(where, fields, Slices)
    slice_type = find_slice_type_or_raise(fields["type"], f"{where}: type")
    slices = Slices(**{**fields, "type": slice_type.kind})
    if not 1 <= slices.count <= 1000:
        raise CatalogueError(f"{where}: count of {slices.type} is {slices.count}, expected 1 to 1000.")
    if slices.capacity not in CAPACITIES:
        raise CatalogueError(
            f"{where}: capacity of {slices.type} is {slices.capacity!r}, expected one of {', '.join(CAPACITIES)}."
        )
    if (slices.capacity == "reserved") != bool(slices.reservation):
        raise CatalogueError(
            f"{where}: reservation of {slices.type} is {slices.reservation!r}, and its capacity {slices.capacity!r}. "
            "Name the reservation of reserved slices, and of no others."
        )
    return slices


def check_cluster(where: str, cluster: Cluster) -> None:
    """Check the values of a cluster, and against one another."""
    if not ZONE.fullmatch(cluster.zone):
        raise CatalogueError(f"{where}: zone is {cluster.zone!r}, expected one such as 'us-central2-b'.")
    if not PROJECT.fullmatch(cluster.project):
        raise CatalogueError(f"{where}: project is {cluster.project!r}, expected the id of a Google Cloud project.")
    for key in ("memory_threshold", "object_store_share"):
        if not 0 < getattr(cluster, key) < 1:
            raise CatalogueError(f"{where}: {key} is {getattr(cluster, key)}, expected a share between 0 and 1.")
    _check_image(where, cluster.image)
    if not MACHINE.fullmatch(cluster.cpu_machine):
        raise CatalogueError(
            f"{where}: cpu_machine is {cluster.cpu_machine!r}, expected a type whose name ends with its CPUs, such as "
            "'n2-standard-32'."
        )
    if not _is_inside(cluster.head_ip):
        raise CatalogueError(
            f"{where}: head_ip is {cluster.head_ip!r}, expected an address of the subnetwork, such as '10.128.0.10'."
        )
    if cluster.address and not re.fullmatch(r"https?://[^/@\s]+", cluster.address):
        raise CatalogueError(
            f"{where}: address is {cluster.address!r}, expected the dashboard's URL, such as 'http://127.0.0.1:8265'."
        )
    if (generation := find_generation(cluster.generation)) is None:
        raise CatalogueError(f"{where}: generation is {cluster.generation!r}, expected one such as 'v5p'.")
    seen = set()
    for slices in cluster.slices:
        _check_slices(where, cluster, slices, generation)
        if (slices.type, slices.capacity, slices.reservation) in seen:
            raise CatalogueError(f"{where}: slices has {slices.type}, {slices.capacity} twice. Add up their counts.")
        seen.add((slices.type, slices.capacity, slices.reservation))
    if (hosts := sum(entry.count * entry.slice_type.hosts for entry in cluster.slices)) > cluster.max_workers:
        raise CatalogueError(
            f"{where}: its slices have {hosts} hosts, and max_workers is {cluster.max_workers}. Raise it or take fewer."
        )


def check_regions(path: Path, clusters: Mapping[str, Cluster]) -> None:
    """A region has one prefix, and a prefix is in one region: an output's place in the mirror is known by either."""
    for name, cluster in clusters.items():
        for other in clusters.values():
            if (cluster.region == other.region) != (cluster.prefix == other.prefix):
                raise CatalogueError(
                    f"{path}: prefix of {name!r} in {cluster.region} is {cluster.prefix!r}, and of {other.name!r} in "
                    f"{other.region} {other.prefix!r}. Clusters of one region have one prefix, and no other region has "
                    "it."
                )


def check_addresses(path: Path, clusters: Mapping[str, Cluster]) -> None:
    heads: dict[str, str] = {}
    for name, cluster in clusters.items():
        if cluster.head_ip in heads:
            raise CatalogueError(
                f"{path}: head_ip of {heads[cluster.head_ip]!r} and {name!r} is {cluster.head_ip}. Each has its own."
            )
        heads[cluster.head_ip] = name


def _is_inside(address: str) -> bool:
    try:
        return ipaddress.IPv4Address(address).is_private
    except ValueError:
        return False


def _check_slices(where: str, cluster: Cluster, slices: Slices, generation: str) -> None:
    slice_type = slices.slice_type
    if slice_type.generation != generation:
        raise CatalogueError(
            f"{where}: slices has {slices.type}, and generation is {cluster.generation!r}. A cluster has one, as zone "
            "and software differ. Make another cluster."
        )
    if cluster.zone not in slice_type.zones:
        raise CatalogueError(
            f"{where}: zone is {cluster.zone!r}, which has no {slices.type}. "
            f"Zones with it: {', '.join(slice_type.zones)}."
        )


def _check_image(where: str, image: str) -> None:
    try:
        image.format(**dict.fromkeys(IMAGE_FIELDS, "x"))
    except (KeyError, IndexError, ValueError, AttributeError):
        raise CatalogueError(
            f"{where}: image is {image!r}, expected an address in which {{region}}, {{project}} and {{tag}} are "
            "filled in."
        ) from None
