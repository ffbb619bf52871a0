"""The settings of a cluster from environment variables; a wrong value is one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ray_cluster import Cluster

from marin_resources.configuration.settings import SettingError
from marin_resources.ray_tpu.cluster.settings import CodeMode
from marin_resources.ray_tpu.cluster.settings_from_env import settings_from_env


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("MARIN_CLUSTER")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    monkeypatch.setenv("MARIN_STATE_DIR", str(tmp_path / "state"))


@pytest.mark.parametrize("cluster", [None, "", " "])
def test_without_a_cluster_steps_run_in_the_run_itself(cluster: str | None) -> None:
    assert settings_from_env(cluster) is None


def test_the_environment_can_set_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {
        "MARIN_CLUSTER": " https://ray.example.org/ ",
        "MARIN_CLUSTER_CODE": "image",
        "MARIN_CLUSTER_WORKING_DIR": str(tmp_path),
        "MARIN_CLUSTER_IMAGE_ROOT": "/app",
        "MARIN_CLUSTER_ENVIRONMENTS": "/opt/train/bin/python=train+evaluate, /opt/vllm/bin/python=vllm, python=",
        "MARIN_CLUSTER_START_TIMEOUT_S": "30",
        "MARIN_CLUSTER_NODE_TYPES": '[{"CPU": 96, "memory": 3e11}, {"TPU-v4-8-head": 1}]',
        "MARIN_CLUSTER_OUTAGE_TIMEOUT_S": "2.5",
        "MARIN_CLUSTER_TOKEN_SECRET": "projects/p/secrets/s/versions/3",
        "RAY_AUTH_TOKEN_PATH": "/etc/ray/token",
    }.items():
        monkeypatch.setenv(name, value)
    settings = settings_from_env(None)
    assert settings is not None
    assert (settings.address, settings.code, settings.image_root) == ("https://ray.example.org", CodeMode.IMAGE, "/app")
    assert (settings.working_dir, settings.start_timeout_s, settings.outage_timeout_s) == (str(tmp_path), 30.0, 2.5)
    assert settings.node_types == ({"CPU": 96, "memory": 3e11}, {"TPU-v4-8-head": 1})
    assert (settings.token_secret, settings.token_path) == ("projects/p/secrets/s/versions/3", "/etc/ray/token")
    assert dict(settings.environments) == {
        "/opt/train/bin/python": ("train", "evaluate"),
        "/opt/vllm/bin/python": ("vllm",),
        "python": (),
    }


def test_what_is_set_in_the_call_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CLUSTER", "http://one:8265")
    monkeypatch.setenv("MARIN_CLUSTER_CODE", "image")
    monkeypatch.setenv("MARIN_CLUSTER_IMAGE_ROOT", "/one")
    settings = settings_from_env("http://two:8265", code=CodeMode.SHIP, image_root=None)
    assert settings is not None
    assert (settings.address, settings.code, settings.image_root) == ("http://two:8265", CodeMode.SHIP, "/one")


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.5:8265",
        "ray://host:10001",
        "gs://bucket",
        "http://",
        "http://:8265",
        "http://h:99999",
        "http://h:x",
    ],
)
def test_an_address_that_is_none_is_reported(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CLUSTER", address)
    expected = "expected 'local' or the dashboard's URL, such as http://10.0.0.5:8265."
    with pytest.raises(SettingError) as refused:
        settings_from_env(None)
    assert str(refused.value) == f"MARIN_CLUSTER is {address!r}, {expected}"
    with pytest.raises(SettingError, match=r"^The Ray cluster's address is "):
        settings_from_env(address)


def test_a_word_that_is_no_address_may_be_the_name_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CLUSTER", "us-central")
    with pytest.raises(SettingError) as refused:
        settings_from_env(None)
    said = str(refused.value)
    assert said.startswith(
        "MARIN_CLUSTER is 'us-central', expected 'local' or the dashboard's URL, such as http://10.0"
    )
    assert ", or names of clusters. No cluster 'us-central' in " in said
    assert said.endswith("Did you mean 'us-central2'?")
    monkeypatch.setenv("MARIN_CLUSTERS", "/nowhere.toml")
    with pytest.raises(SettingError, match=r"'/nowhere\.toml' cannot be read"):
        settings_from_env(None)


def test_a_cluster_by_its_name_is_as_the_catalogue_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "MARIN_CLUSTER_TOKEN_SECRET", "MARIN_CLUSTER_NODE_TYPES"):
        monkeypatch.delenv(name, raising=False)
    settings = settings_from_env("us-central1")
    assert settings is not None
    assert settings.address == "http://10.11.0.10:8265"
    assert settings.token_secret == "projects/marin-example/secrets/RAY_AUTH_TOKEN"
    assert [kind for node in settings.node_types for kind in node if kind.startswith("TPU-")] == [
        "TPU-v5p-8-head",
        "TPU-v5p-64-head",
    ]
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/my/token")
    settings = settings_from_env("us-central1")
    assert settings is not None
    assert (settings.token_secret, settings.token_path) == (None, "/my/token")


@pytest.mark.parametrize("address", ["http://h:8265/api/jobs", "http://h:8265?x=1", "http://h:8265/#/jobs"])
def test_an_address_of_a_page_is_reported(address: str) -> None:
    with pytest.raises(SettingError, match=r"without anything behind the port\.$"):
        settings_from_env(address)


def test_a_password_in_an_address_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CLUSTER", "http://me:hunter2@h:8265")
    with pytest.raises(SettingError, match=r"^MARIN_CLUSTER has a user or a password in it, ") as refused:
        settings_from_env(None)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("MARIN_CLUSTER_CODE", "docker", "MARIN_CLUSTER_CODE is 'docker', expected 'ship'"),
        ("MARIN_CLUSTER_WORKING_DIR", "/no/where", "MARIN_CLUSTER_WORKING_DIR is '/no/where', which is not a folder"),
        ("MARIN_CLUSTER_IMAGE_ROOT", "app", "MARIN_CLUSTER_IMAGE_ROOT is 'app', expected an absolute path"),
        ("MARIN_CLUSTER_ENVIRONMENTS", "train", "MARIN_CLUSTER_ENVIRONMENTS has 'train' in it, expected python=extra"),
        ("MARIN_CLUSTER_ENVIRONMENTS", "=train", "MARIN_CLUSTER_ENVIRONMENTS has '=train' in it, expected"),
        ("MARIN_CLUSTER_ENVIRONMENTS", "p=train,p=vllm", "MARIN_CLUSTER_ENVIRONMENTS has 'p=vllm' in it, expected"),
        ("MARIN_CLUSTER_ENVIRONMENTS", "p=trian", "MARIN_CLUSTER_ENVIRONMENTS has the extra 'trian' in it, expected"),
        *(
            (
                "MARIN_CLUSTER_NODE_TYPES",
                value,
                f"MARIN_CLUSTER_NODE_TYPES is {value!r}, expected a JSON list of the resources of nodes",
            )
            for value in ('{"CPU": 96}', "[96]", "CPU=96", '[{"CPU": "96"}]', '[{"CPU": -1}]', '[{"CPU": true}]', "3")
        ),
        ("MARIN_CLUSTER_START_TIMEOUT_S", "10m", "MARIN_CLUSTER_START_TIMEOUT_S is '10m', expected seconds above 0."),
        ("MARIN_CLUSTER_OUTAGE_TIMEOUT_S", "0", "MARIN_CLUSTER_OUTAGE_TIMEOUT_S is '0', expected seconds above 0."),
        ("MARIN_CLUSTER_OUTAGE_TIMEOUT_S", "inf", "MARIN_CLUSTER_OUTAGE_TIMEOUT_S is 'inf', expected seconds above"),
        ("MARIN_CLUSTER_OUTAGE_TIMEOUT_S", "nan", "MARIN_CLUSTER_OUTAGE_TIMEOUT_S is 'nan', expected seconds above"),
    ],
)
def test_a_value_that_cannot_be_is_reported(
    name: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingError) as refused:
        settings_from_env("http://host:8265")
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_a_token_where_its_name_should_be_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CLUSTER_TOKEN_SECRET", "0123456789abcdef")
    with pytest.raises(SettingError, match=r"^MARIN_CLUSTER_TOKEN_SECRET does not name a secret, expected") as refused:
        settings_from_env("http://host:8265")
    assert "0123456789abcdef" not in str(refused.value)


def test_local_is_the_cluster_of_this_machine(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_STATE_DIR", str(cluster.state))
    monkeypatch.setenv("MARIN_CLUSTER", "local")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/of/another/cluster")
    settings = settings_from_env(None)
    assert settings is not None
    assert (settings.address, settings.token_path) == (cluster.address, cluster.token_path)


def test_a_local_cluster_that_is_not_up_is_reported_with_the_command() -> None:
    with pytest.raises(SettingError, match=r"^No local cluster is up .* Start it: marin cluster local up$"):
        settings_from_env("local")
