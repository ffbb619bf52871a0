"""Catalogues of clusters for tests of fleets: a cluster of v4 in us-central2, two of v5p and v6e in us-east5."""

from __future__ import annotations

from pathlib import Path

import pytest

CATALOGUE = """
project = "marin-example"
image = "{{region}}-docker.pkg.dev/{{project}}/marin/cluster:{{tag}}"
tag = "latest"
token_secret = "RAY_AUTH_TOKEN"
network = "marin"
subnetwork = "marin"
head_account = "marin-head"
worker_account = "marin-worker"
head_machine = "n2-standard-8"
head_disk_gb = 200
cpu_machine = "n2-standard-32"
cpu_disk_gb = 500
cpu_workers = 16
cpu_spot = true
heartbeat_timeout_s = 600
max_workers = 1024
memory_threshold = 0.95
object_store_share = 0.1

[clusters.central]
zone = "us-central2-b"
head_ip = "10.10.0.10"
prefix = "{central}"
generation = "v4"
slices = [{{ type = "v4-8", count = 8 }}, {{ type = "v4-64", count = 1 }}]
{of_central}

[clusters.east]
zone = "us-east5-a"
head_ip = "10.12.0.10"
prefix = "{east}"
generation = "v5p"
slices = [{{ type = "v5p-64", count = 4 }}]
{of_east}

[clusters.west]
zone = "us-east1-d"
head_ip = "10.13.0.10"
prefix = "{west}"
generation = "v6e"
slices = [{{ type = "v6e-4", count = 8 }}]
cpu_machine = "n2-standard-64"
{of_west}
"""


def write_catalogue(
    folder: Path,
    *,
    central: str = "gs://central",
    east: str = "gs://east/data",
    west: str = "gs://west",
    of_central: str = "",
    of_east: str = "",
    of_west: str = "",
) -> Path:
    """Write a catalogue of three clusters with these prefixes, and further keys of each."""
    path = folder / "clusters.toml"
    keys = {"of_central": of_central, "of_east": of_east, "of_west": of_west}
    path.write_text(CATALOGUE.format(central=central, east=east, west=west, **keys), encoding="utf-8")
    return path


def use(path: Path, monkeypatch: pytest.MonkeyPatch, cluster: str = "central,east,west") -> None:
    """Let the environment name these clusters of the catalogue."""
    monkeypatch.setenv("MARIN_CLUSTERS", str(path))
    monkeypatch.setenv("MARIN_CLUSTER", cluster)
    for name in ("MARIN_MIRROR_PREFIXES", "MARIN_REGION", "MARIN_MIRROR_PRICES", "MARIN_DEVICE_PRICES"):
        monkeypatch.delenv(name, raising=False)
