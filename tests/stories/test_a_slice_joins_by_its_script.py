"""A slice that Google has made joins the cluster by its start-up script, and again after all that may happen to it.

The Ray cluster is real, with its token; the script is the one that the request carries. Google's machines and docker
are processes here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from fake_google.adapter import InProcess, session
from fake_google.server import FakeGoogle
from google_cloud import google_cloud
from ray_cluster import Cluster as RayCluster
from running import wait_until
from slice_hosts import Hosts

from marin_resources.clusters.catalogue import find_cluster
from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.google import Google
from marin_resources.infra.slices.cluster_members import hosts_of_slices
from marin_resources.infra.slices.controller import Controller
from marin_resources.infra.slices.desired_state import change, path_of
from marin_resources.infra.slices.queued_resources import Slices
from marin_resources.ray_tpu.cluster.api import token

pytestmark = pytest.mark.long
FIRST, SECOND = "us-central2-v4-16-0-1", "us-central2-v4-16-0-2"


@pytest.fixture(scope="module")
def ray() -> Iterator[RayCluster]:
    with RayCluster(cpus=2) as ray:
        yield ray


@pytest.fixture
def google(tmp_path: Path, ray: RayCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGoogle]:
    with google_cloud(tmp_path) as google:
        google.world.secrets["RAY_AUTH_TOKEN"] = Path(ray.token_path).read_text()
        for name, value in google.environment.items():
            monkeypatch.setenv(name, value)  # for the head's token, which comes from there too
        yield google


@pytest.fixture
def cluster(tmp_path: Path, ray: RayCluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(token, "_SECRETS", {})
    monkeypatch.setattr(Cluster, "dashboard", property(lambda self: ray.address))
    return dataclasses.replace(find_cluster("us-central2"), prefix=str(tmp_path / "prefix"), head_ip="127.0.0.1")


@pytest.fixture
def hosts(google: FakeGoogle, ray: RayCluster, tmp_path: Path) -> Iterator[Hosts]:
    hosts = Hosts(google, ray, tmp_path)
    yield hosts
    hosts.end()


def test_a_slice_joins_is_preempted_and_outlives_a_head(
    google: FakeGoogle, cluster: Cluster, hosts: Hosts, ray: RayCluster
) -> None:
    def joined() -> Mapping[str, int]:
        return hosts_of_slices(cluster) or {}

    controller = Controller(cluster, Slices(cluster, Google(session(InProcess(google)))), joined=joined)
    change(path_of(cluster), lambda wanted: wanted.add("v4-16", "spot", "", 1))

    def slices() -> Mapping[str, int]:
        """A minute of the cluster's life."""
        controller.step()
        hosts.boot()
        return joined()

    wait_until(lambda: slices().get(FIRST) == 2, "both hosts of the first slice", 60)
    for worker in range(2):
        assert hosts.log(FIRST, worker).splitlines()[:4] == [
            "pull failed",
            "pull failed",
            "pulled",
            "run us-central2-docker.pkg.dev/marin-example/marin/cluster:latest",
        ]
        assert Path(ray.token_path).read_text() not in hosts.log(FIRST, worker)

    google.tpu.preempt(FIRST)
    wait_until(lambda: slices() == {SECOND: 2}, "the second slice, and no host of the first", 180)

    ray.kill_head()
    wait_until(lambda: "the container has ended" in hosts.log(SECOND, 0), "a host that notices", 120)
    assert hosts_of_slices(cluster) is None
    controller.step()  # nobody is replaced for a head that is away
    ray.restart_head()
    wait_until(lambda: slices() == {SECOND: 2}, "the hosts at the next head", 180)
    assert list(google.world.queued) == [f"projects/marin-example/locations/us-central2-b/queuedResources/{SECOND}"]
