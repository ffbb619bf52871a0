"""The catalogue of clusters: infra/clusters.toml, read and checked. A sentence about it names file, cluster and key."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_resources.accelerators.catalogue import SliceType, find_generation, find_slice_type, near_slice_types
from marin_resources.settings import SettingError, normalize_prefix, project_root

VARIABLE = "MARIN_CLUSTERS"
CAPACITIES = ("spot", "on-demand", "reserved")
NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
"""Of a cluster. Google's names have 63 characters, and Ray and `Slot.name` append up to 23 to ours."""
ZONE = re.compile(r"([a-z]+-[a-z]+[0-9]+)-[a-z]")
PROJECT = re.compile(r"[a-z][-a-z0-9]{4,28}[a-z0-9]")
IMAGE_FIELDS = ("region", "project", "tag")


class CatalogueError(SettingError):
    """The catalogue is wrong, or has no such cluster: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Slices:
    """So many slices of one type that a cluster shall have."""

    type: str
    """Google's name: "v5p-64"."""
    count: int
    capacity: str = "spot"
    """One of `CAPACITIES`."""
    reservation: str = ""
    """The name of the reservation, of reserved ones."""

    @property
    def slice_type(self) -> SliceType:
        return find_slice_type_or_raise(self.type)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One Ray cluster in one zone. The keys of infra/clusters.toml, which says what each is."""

    name: str
    zone: str
    prefix: str
    generation: str
    head_ip: str
    slices: tuple[Slices, ...] = ()
    project: str
    image: str
    tag: str
    token_secret: str
    network: str
    subnetwork: str
    head_account: str
    worker_account: str
    head_machine: str
    head_disk_gb: int
    cpu_machine: str
    cpu_disk_gb: int
    cpu_workers: int
    cpu_spot: bool
    heartbeat_timeout_s: int
    max_workers: int
    memory_threshold: float
    object_store_share: float

    @property
    def region(self) -> str:
        return self.zone.rpartition("-")[0]

    @property
    def image_url(self) -> str:
        return self.image.format(region=self.region, project=self.project, tag=self.tag)

    @property
    def dashboard(self) -> str:
        """The URL of the head's dashboard, for MARIN_CLUSTER."""
        return f"http://{self.head_ip}:8265"

    @property
    def token_resource(self) -> str:
        """The secret, by its full name: "projects/p/secrets/s"."""
        return f"projects/{self.project}/secrets/{self.token_secret}"

    @property
    def bad_slices(self) -> str:
        """The folder in which steps report slices with a bad host."""
        return f"{self.prefix}/.marin/clusters/{self.name}-bad"

    @property
    def subnetwork_path(self) -> str:
        return f"projects/{self.project}/regions/{self.region}/subnetworks/{self.subnetwork}"

    def email(self, account: str) -> str:
        """The address of a service account of the project."""
        return f"{account}@{self.project}.iam.gserviceaccount.com"


def find_slice_type_or_raise(kind: str, where: str = "The type of a slice") -> SliceType:
    """The type of slice of that name or alias. Raises CatalogueError."""
    if (found := find_slice_type(kind)) is None:
        near = " or ".join(map(repr, near_slice_types(kind)))
        raise CatalogueError(f"{where} is {kind!r}, which is no type of slice. Did you mean {near}?")
    return found


def default_path() -> Path:
    """The file of MARIN_CLUSTERS, else infra/clusters.toml of the checkout."""
    given = os.environ.get(VARIABLE, "").strip()
    return Path(given).expanduser() if given else templates() / "clusters.toml"


def templates() -> Path:
    """The folder with the templates."""
    return project_root() / "infra"


def read_catalogue(path: Path | None = None) -> dict[str, Cluster]:
    """Name -> cluster, in the order of the file. Raises CatalogueError."""
    path = path or default_path()
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise CatalogueError(
            f"The catalogue of clusters {str(path)!r} cannot be read ({why}). Set {VARIABLE} to another one."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"The catalogue of clusters {str(path)!r} is no TOML: {error}.") from None
    clusters = read.pop("clusters", {})
    if not isinstance(clusters, dict) or not clusters:
        raise CatalogueError(f"{path}: no cluster. Add a table [clusters.NAME] with zone, prefix and generation.")
    found = {name: _cluster(path, name, read, each) for name, each in clusters.items()}
    _check_addresses(path, found)
    return found


def find_cluster(name: str, path: Path | None = None) -> Cluster:
    """The cluster of that name. Raises CatalogueError."""
    clusters = read_catalogue(path)
    if name not in clusters:
        near = difflib.get_close_matches(name, clusters, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise CatalogueError(
            f"No cluster {name!r} in {path or default_path()}, expected one of {', '.join(clusters)}.{meant}"
        )
    return clusters[name]


def cluster_with(kind: str, name: str | None = None, path: Path | None = None) -> Cluster:
    """The cluster of that name, or the only one whose slices may be of this type. Raises CatalogueError."""
    slice_type = find_slice_type_or_raise(kind)
    clusters = read_catalogue(path).values() if name is None else [find_cluster(name, path)]
    able = [
        each
        for each in clusters
        if find_generation(each.generation) == slice_type.generation and each.zone in slice_type.zones
    ]
    if len(able) == 1:
        return able[0]
    if name is not None:
        [cluster] = clusters
        raise CatalogueError(
            f"The cluster {name!r} is in {cluster.zone} and has slices of {cluster.generation}, so it has no {kind}. "
            f"Zones with it: {', '.join(slice_type.zones)}."
        )
    if not able:
        raise CatalogueError(f"No cluster can have {kind}. Zones with it: {', '.join(slice_type.zones)}.")
    raise CatalogueError(f"Which cluster shall have {kind}? --cluster {' or '.join(each.name for each in able)}.")


def _cluster(path: Path, name: str, defaults: Mapping[str, Any], found: Any) -> Cluster:
    where = f"{path}: [clusters.{name}]"
    if not NAME.fullmatch(name):
        raise CatalogueError(
            f"{where}: got the name {name!r}, expected up to 40 small letters, digits and hyphens, a letter first."
        )
    if not isinstance(found, dict):
        raise CatalogueError(f"{where}: got {found!r}, expected a table of keys.")
    given = {**defaults, **found}
    _check_keys(where, given, Cluster, own={"name"})
    slices = given.pop("slices", [])
    if not isinstance(slices, list):
        raise CatalogueError(f"{where}: slices is {slices!r}, expected a list of tables.")
    given["prefix"] = _normalized(where, given["prefix"])
    cluster = Cluster(name=name, slices=tuple(_slices(where, each) for each in slices), **given)
    _check(where, cluster)
    return cluster


def _normalized(where: str, prefix: str) -> str:
    """Without a slash at its end: outputs, reports and the file of wanted slices are below it by one name."""
    if not prefix.startswith("gs://"):
        raise CatalogueError(f"{where}: prefix is {prefix!r}, expected one such as 'gs://marin-us-central2'.")
    try:
        return normalize_prefix(prefix)
    except SettingError as error:
        raise CatalogueError(f"{where}: prefix: {error}") from None


def _slices(where: str, found: Any) -> Slices:
    where = f"{where}: slices"
    if not isinstance(found, dict):
        raise CatalogueError(f'{where}: got {found!r}, expected a table such as {{ type = "v5p-8", count = 4 }}.')
    _check_keys(where, found, Slices)
    slice_type = find_slice_type_or_raise(found["type"], f"{where}: type")
    slices = Slices(**{**found, "type": slice_type.kind})
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


def _check_keys(where: str, given: Mapping[str, Any], kind: type, own: frozenset[str] | set[str] = frozenset()) -> None:
    """Each key is known and has a value of its type, and those without a default are there."""
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
    return isinstance(value, str) and bool(value.strip())


def _check(where: str, cluster: Cluster) -> None:
    """What no single type says."""
    if not ZONE.fullmatch(cluster.zone):
        raise CatalogueError(f"{where}: zone is {cluster.zone!r}, expected one such as 'us-central2-b'.")
    if not PROJECT.fullmatch(cluster.project):
        raise CatalogueError(f"{where}: project is {cluster.project!r}, expected the id of a Google Cloud project.")
    for key in ("memory_threshold", "object_store_share"):
        if not 0 < getattr(cluster, key) < 1:
            raise CatalogueError(f"{where}: {key} is {getattr(cluster, key)}, expected a share between 0 and 1.")
    _check_image(where, cluster.image)
    if not _is_inside(cluster.head_ip):
        raise CatalogueError(
            f"{where}: head_ip is {cluster.head_ip!r}, expected an address of the subnetwork, such as '10.128.0.10'."
        )
    if (generation := find_generation(cluster.generation)) is None:
        raise CatalogueError(f"{where}: generation is {cluster.generation!r}, expected one such as 'v5p'.")
    seen = set()
    for slices in cluster.slices:
        _check_slices(where, cluster, slices, generation)
        if (slices.type, slices.capacity, slices.reservation) in seen:
            raise CatalogueError(f"{where}: slices has {slices.type}, {slices.capacity} twice. Add up their counts.")
        seen.add((slices.type, slices.capacity, slices.reservation))
    if (hosts := sum(each.count * each.slice_type.hosts for each in cluster.slices)) > cluster.max_workers:
        raise CatalogueError(
            f"{where}: its slices have {hosts} hosts, and max_workers is {cluster.max_workers}. Raise it or take fewer."
        )


def _check_addresses(path: Path, clusters: Mapping[str, Cluster]) -> None:
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
    found = slices.slice_type
    if found.generation != generation:
        raise CatalogueError(
            f"{where}: slices has {slices.type}, and generation is {cluster.generation!r}. A cluster has one, as zone "
            "and software differ. Make another cluster."
        )
    if cluster.zone not in found.zones:
        raise CatalogueError(
            f"{where}: zone is {cluster.zone!r}, which has no {slices.type}. Zones with it: {', '.join(found.zones)}."
        )


def _check_image(where: str, image: str) -> None:
    try:
        image.format(**dict.fromkeys(IMAGE_FIELDS, "x"))
    except (KeyError, IndexError, ValueError, AttributeError):
        raise CatalogueError(
            f"{where}: image is {image!r}, expected an address in which {{region}}, {{project}} and {{tag}} are "
            "filled in."
        ) from None
