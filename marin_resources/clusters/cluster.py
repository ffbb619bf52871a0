"""A cluster of the catalogue: its zone, its prefix, its slices. The keys of infra/clusters.toml."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from marin_resources.configuration.settings import SettingError
from marin_resources.hardware.catalogue import SliceType, find_slice_type, near_slice_types

CAPACITIES = ("spot", "on-demand", "reserved")
MACHINE = re.compile(r"[a-z0-9]+-(?P<share>[a-z]+)-(?P<cpus>[1-9]\d*)")
"""Google's types of machines end with their CPUs."""
GIB_A_CPU = {"standard": 4, "highmem": 8, "highcpu": 1}
"""The least of any family (cloud.google.com/compute/docs/machine-resource)."""


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
    """One Ray cluster in one zone. The keys of infra/clusters.toml, which explains each."""

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
    deployment_account: str = "marin-dagster"
    """The service account of the machines that Dagster runs on."""
    address: str = ""
    """URL of the dashboard, for those outside the network, who reach it by a tunnel; "": that of the head."""
    token_path: str = ""
    """A file with the token, on the submitter's machine; "": it is in Secret Manager."""
    chip_dollars: float | None = None
    """Price of an hour of a chip; None: the price of its generation in MARIN_DEVICE_PRICES."""
    cpu_dollars: float | None = None
    """Price of an hour of a CPU; None: it is not known."""

    @property
    def region(self) -> str:
        return self.zone.rpartition("-")[0]

    @property
    def image_url(self) -> str:
        return self.image.format(region=self.region, project=self.project, tag=self.tag)

    @property
    def worker_cpus(self) -> int:
        """CPUs of a worker without a TPU."""
        return int(_machine(self.cpu_machine)["cpus"])

    @property
    def worker_memory_bytes(self) -> float:
        """Memory of a worker without a TPU; infinite where the name of its type does not define it."""
        return self.worker_cpus * GIB_A_CPU.get(_machine(self.cpu_machine)["share"], math.inf) * 2**30

    @property
    def dashboard(self) -> str:
        """The URL of the head's dashboard."""
        return self.address or f"http://{self.head_ip}:8265"

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


def _machine(name: str) -> re.Match[str]:
    match = MACHINE.fullmatch(name)
    if match is None:
        raise CatalogueError(
            f"cpu_machine is {name!r}, expected a type whose name ends with its CPUs, such as 'n2-standard-32'."
        )
    return match


def find_slice_type_or_raise(kind: str, where: str = "The type of a slice") -> SliceType:
    """The type of slice of that name or alias. Raises CatalogueError."""
    if (slice_type := find_slice_type(kind)) is None:
        near = " or ".join(map(repr, near_slice_types(kind)))
        raise CatalogueError(f"{where} is {kind!r}, which is no type of slice. Did you mean {near}?")
    return slice_type
