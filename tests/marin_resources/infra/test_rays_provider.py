"""Ray's own provider for Google Cloud takes the rendered files, against a Google Cloud on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_google.server import FakeGoogle
from google_cloud import google_cloud, take_for_google

from marin_resources.clusters.catalogue import default_path

HEAD = {"ray-node-type": "head", "ray-node-name": "ray-us-central2-head"}
SLICE = {"ray-node-type": "worker", "ray-node-name": "ray-us-central2-worker"}
pytestmark = pytest.mark.long


@pytest.fixture
def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGoogle]:
    monkeypatch.setenv("HOME", str(tmp_path))  # where Ray puts the key of ssh
    with google_cloud(tmp_path) as google:
        take_for_google(google, monkeypatch)
        yield google


def bootstrapped(**node_types: Any) -> dict[str, Any]:
    """The configuration of a cluster when Ray has filled in all that it makes itself."""
    from ray.autoscaler._private.gcp.node_provider import GCPNodeProvider
    from ray.autoscaler._private.util import prepare_config

    config = yaml.safe_load((default_path().parent / "us-central2.yaml").read_text())
    config["available_node_types"].update(node_types)
    found: dict[str, Any] = GCPNodeProvider.bootstrap_config(prepare_config(config))
    return found


def provider(config: dict[str, Any]) -> Any:
    from ray.autoscaler._private.gcp.node_provider import GCPNodeProvider

    return GCPNodeProvider(config["provider"], config["cluster_name"])


def test_a_head_is_created_found_labelled_and_deleted(google: FakeGoogle) -> None:
    config = bootstrapped()
    ours = provider(config)
    ours.create_node(config["available_node_types"]["head"]["node_config"], HEAD, 1)
    [name] = ours.non_terminated_nodes({"ray-node-type": "head"})
    [machine] = google.world.instances.values()
    assert machine["serviceAccounts"][0]["email"] == "marin-head@marin-example.iam.gserviceaccount.com"
    assert "accessConfigs" not in machine["networkInterfaces"][0]
    assert ours.is_running(name)
    assert ours.internal_ip(name) == machine["networkInterfaces"][0]["networkIP"]
    ours.set_node_tags(name, {"ray-node-status": "up-to-date"})
    assert provider(config).node_tags(name)["ray-node-status"] == "up-to-date"
    ours.terminate_node(name)
    assert ours.non_terminated_nodes({}) == []
    assert google.world.instances == {}


def test_workers_come_at_once_and_a_preempted_one_leaves_nothing(google: FakeGoogle) -> None:
    config = bootstrapped()
    ours = provider(config)
    ours.create_node(config["available_node_types"]["cpu"]["node_config"], SLICE, 3)
    names = ours.non_terminated_nodes({"ray-node-type": "worker"})
    assert len(names) == 3
    google.compute.preempt(names[0])
    assert sorted(ours.non_terminated_nodes({})) == sorted(names[1:])
    assert len(google.world.instances) == 2


def test_two_start_at_once_and_one_key_does_not_replace_the_other(
    google: FakeGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray reads the project's metadata, appends its key and writes: somebody else may have written in between."""
    monkeypatch.setattr("ray.autoscaler._private.gcp.config.POLL_INTERVAL", 0.1)
    metadata = google.world.metadata

    def write_first() -> None:
        google.world.metadata = {
            "fingerprint": "other",
            "items": [*metadata["items"], {"key": "ssh-keys", "value": "eve:ssh-rsa AAAA eve"}],
        }

    google.world.faults.append(("compute.projects.setCommonInstanceMetadata", write_first))
    bootstrapped()
    [keys] = [each["value"] for each in google.world.metadata["items"] if each["key"] == "ssh-keys"]
    assert {line.partition(":")[0] for line in keys.splitlines()} == {"eve", "ubuntu"}


def test_what_ray_forgets_of_a_preempted_slice_is_why_ours_are_not_its_own(google: FakeGoogle) -> None:
    """It takes a preempted slice for gone, and never deletes it: it stays in the list, and in the quota."""
    node = {
        "acceleratorType": "v4-8",
        "runtimeVersion": "tpu-ubuntu2204-base",
        "schedulingConfig": {"preemptible": True},
    }
    config = bootstrapped(tpu={"resources": {"TPU": 4}, "max_workers": 1, "node_config": node})
    ours = provider(config)
    ours.create_node(config["available_node_types"]["tpu"]["node_config"], SLICE, 1)
    [name] = ours.non_terminated_nodes({})
    assert ours.is_running(name)
    google.tpu.preempt(name.rpartition("/")[2])
    assert ours.non_terminated_nodes({}) == []
    assert [each["state"] for each in google.world.nodes.values()] == ["PREEMPTED"]


def test_a_file_that_google_would_refuse_is_refused_here(google: FakeGoogle) -> None:
    from googleapiclient.errors import HttpError

    config = bootstrapped()
    machine = config["available_node_types"]["head"]["node_config"]
    ours = provider(config)
    for change, said in (
        ({"machinetype": "x"}, 'Unknown name "machinetype"'),
        ({"scheduling": {"provisioningModel": "CHEAP"}}, "TYPE_ENUM"),
        ({"serviceAccounts": [{"email": "nobody@x", "scopes": ["x"]}]}, "nobody@x"),
        ({"networkInterfaces": [{"subnetwork": "projects/marin-example/regions/x/subnetworks/y"}]}, "was not found"),
        ({"disks": []}, "Boot disk"),
    ):
        with pytest.raises(HttpError) as error:
            ours.create_node({**machine, **change}, HEAD, 1)
        assert said in str(error.value)
    assert google.world.instances == {}
