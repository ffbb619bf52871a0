"""The Google Cloud of the tests: what Google would refuse it refuses, and slices go through Google's states."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_google.server import FakeGoogle
from fake_google.world import Delays, World
from google_cloud import google_cloud, take_for_google

WHERE = "projects/marin-example/locations/us-central2-b"
NODE = {"acceleratorType": "v4-16", "runtimeVersion": "tpu-ubuntu2204-base"}


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def google(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGoogle]:
    world = World(now=clock, delays=Delays(boot_s=60, provisioning_s=30, deletion_s=10))
    with google_cloud(tmp_path, world) as google:
        take_for_google(google, monkeypatch)
        yield google


@pytest.fixture
def tpu(google: FakeGoogle) -> Any:
    """Google's own client."""
    from googleapiclient import discovery

    return discovery.build("tpu", "v2alpha1", cache_discovery=False).projects().locations()


def queued(tier: dict[str, Any] | None = None, **node: Any) -> dict[str, Any]:
    spec = {"parent": WHERE, "nodeId": "slice-1", "node": {**NODE, **node}}
    return {"tpu": {"nodeSpec": [spec]}, **(tier if tier is not None else {"spot": {}})}


def create(tpu: Any, body: dict[str, Any], name: str = "queued-1") -> dict[str, Any]:
    found: dict[str, Any] = tpu.queuedResources().create(parent=WHERE, queuedResourceId=name, body=body).execute()
    return found


def state(tpu: Any, name: str = "queued-1") -> str:
    found: str = tpu.queuedResources().get(name=f"{WHERE}/queuedResources/{name}").execute()["state"]["state"]
    return found


def refusal(call: Any) -> tuple[int, str]:
    from googleapiclient.errors import HttpError

    with pytest.raises(HttpError) as error:
        call.execute()
    return error.value.resp.status, str(error.value)


def test_a_queued_slice_goes_through_the_states_of_google(google: FakeGoogle, tpu: Any, clock: Clock) -> None:
    create(tpu, queued())
    assert state(tpu) == "ACCEPTED"
    clock.now_s = 31
    assert state(tpu) == "CREATING"
    clock.now_s = 92
    assert state(tpu) == "ACTIVE"
    node = tpu.nodes().get(name=f"{WHERE}/nodes/slice-1").execute()
    assert node["state"] == "READY"
    assert node["schedulingConfig"] == {"spot": True}
    assert len(node["networkEndpoints"]) == 2
    google.tpu.preempt("slice-1")
    assert state(tpu) == "SUSPENDED"
    assert tpu.nodes().list(parent=WHERE).execute() == {}
    tpu.queuedResources().delete(name=f"{WHERE}/queuedResources/queued-1").execute()
    assert state(tpu) == "DELETING"
    clock.now_s = 103
    assert refusal(tpu.queuedResources().get(name=f"{WHERE}/queuedResources/queued-1"))[0] == 404


def test_without_capacity_it_waits(google: FakeGoogle, tpu: Any, clock: Clock) -> None:
    google.world.capacity["us-central2-b", "v4-16"] = 1
    create(tpu, queued())
    clock.now_s = 31
    second = queued()
    second["tpu"]["nodeSpec"][0]["nodeId"] = "slice-2"
    create(tpu, second, "queued-2")
    clock.now_s = 92
    assert (state(tpu), state(tpu, "queued-2")) == ("ACTIVE", "WAITING_FOR_RESOURCES")
    google.tpu.preempt("slice-1")
    tpu.queuedResources().list(parent=WHERE).execute()
    assert (state(tpu), state(tpu, "queued-2")) == ("SUSPENDED", "CREATING")


def test_what_holds_a_slice_is_deleted_by_force_alone_and_its_name_is_taken_until_then(
    google: FakeGoogle, tpu: Any, clock: Clock
) -> None:
    create(tpu, queued())
    clock.now_s = 92
    again = tpu.queuedResources().create(parent=WHERE, queuedResourceId="queued-1", body=queued())
    assert refusal(again)[0] == 409
    path = f"{WHERE}/queuedResources/queued-1"
    status, said = refusal(tpu.queuedResources().delete(name=path))
    assert (status, "state ACTIVE" in said) == (400, True)
    tpu.queuedResources().delete(name=path, force=True).execute()
    clock.now_s = 103
    google.world.settle()
    assert google.world.nodes == google.world.queued == {}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (queued(colour="red"), 400, "Unknown name"),
        (queued(acceleratorType="v4-17"), 404, "v4-17"),
        (queued(acceleratorType="v6e-4"), 404, "is not in zone"),
        (queued(runtimeVersion=""), 400, "runtime_version"),
        (queued(serviceAccount={"email": "nobody@x"}), 400, "does not exist"),
        (queued(labels={"a": 1}), 400, "TYPE_STRING"),
        (queued({"spot": {}, "guaranteed": {"reserved": True}}), 400, "one tier"),
        (queued({"guaranteed": {"reserved": True}}), 400, "reservation_name"),
    ],
)
def test_what_google_refuses(google: FakeGoogle, tpu: Any, body: Any, status: int, said: str) -> None:
    found = refusal(tpu.queuedResources().create(parent=WHERE, queuedResourceId="queued-1", body=body))
    assert found[0] == status
    assert said in found[1]
    assert google.world.queued == {}


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_gcloud_itself_takes_it_for_google(google: FakeGoogle, clock: Clock, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(google.token)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "GOOGLE_APPLICATION_CREDENTIALS"},
        "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
        "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE": str(google.certificate),
        "CLOUDSDK_CORE_PROJECT": google.world.project,
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token),
    }

    def gcloud(*arguments: str) -> str:
        command = ["gcloud", "compute", "tpus", *arguments, "--zone=us-central2-b"]
        return subprocess.run(command, env=environment, text=True, capture_output=True, check=True).stdout

    kind = ("--accelerator-type=v4-16", "--runtime-version=tpu-ubuntu2204-base")
    gcloud("queued-resources", "create", "queued-1", "--node-id=slice-1", *kind, "--spot", "--async")
    clock.now_s = 92
    assert "ACTIVE" in gcloud("queued-resources", "list")
    assert "READY" in gcloud("tpu-vm", "list")
    gcloud("queued-resources", "delete", "queued-1", "--force", "--async")
    clock.now_s = 103
    google.world.settle()
    assert google.world.nodes == google.world.queued == {}


def test_nothing_is_answered_without_a_token(google: FakeGoogle) -> None:
    import requests

    answer = requests.get(f"https://tpu.googleapis.com/v2/{WHERE}/nodes", timeout=10)
    assert answer.status_code == 401
    assert answer.json()["error"]["status"] == "UNAUTHENTICATED"


def test_a_method_that_is_not_built_says_so(google: FakeGoogle, tpu: Any) -> None:
    status, said = refusal(tpu.reservations().list(parent=WHERE))
    assert (status, "not built" in said) == (501, True)
