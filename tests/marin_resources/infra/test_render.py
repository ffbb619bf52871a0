"""infra/<cluster>.yaml: up to date, valid for Ray, and with nothing in it that nobody may see."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from marin_assets.cli.main import main
from marin_resources.clusters.catalogue import default_path, read_catalogue

INFRA = default_path().parent
CLUSTERS = read_catalogue()
WORLD = ("0.0.0.0/0", "::/0")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of infra, to be changed."""
    return Path(shutil.copytree(INFRA, tmp_path / "infra"))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=sorted(CLUSTERS))
def rendered(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((INFRA / f"{request.param}.yaml").read_text())
    return found


def test_the_committed_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "render", "--check"]) == 0, capsys.readouterr().err


def test_ray_takes_each_file(rendered: dict[str, Any]) -> None:
    prepared = prepare_config(rendered)
    validate_config(prepared)
    assert not [each for each in prepared["head_setup_commands"] if "pip install" in each]
    cluster = CLUSTERS[rendered["cluster_name"]]
    assert rendered["provider"]["availability_zone"] == cluster.zone
    assert rendered["docker"]["image"] == cluster.image_url
    assert rendered["max_workers"] == 1024


def test_the_head_is_never_preempted_and_runs_no_step(rendered: dict[str, Any]) -> None:
    head = rendered["available_node_types"][rendered["head_node_type"]]
    assert head["node_config"]["scheduling"]["provisioningModel"] == "STANDARD"
    assert head["resources"]["CPU"] == 0


def test_the_heads_state_is_in_redis_on_its_own_disk(rendered: dict[str, Any]) -> None:
    """A story kills such a head, and its jobs go on."""
    _, redis, ray = rendered["head_start_ray_commands"]
    assert "--bind 127.0.0.1" in redis
    assert "--dir /var/lib/marin/redis --appendonly yes" in redis
    assert "RAY_REDIS_ADDRESS=127.0.0.1:6380 ray start --head" in ray
    assert "--volume=/var/lib/marin:/var/lib/marin" in rendered["docker"]["head_run_options"]


def test_no_machine_has_an_address_outside_and_no_file_a_secret(rendered: dict[str, Any]) -> None:
    assert rendered["provider"]["use_internal_ips"] is True
    for each in rendered["available_node_types"].values():
        for interface in each["node_config"]["networkInterfaces"]:
            assert "accessConfigs" not in interface
    text = (INFRA / f"{rendered['cluster_name']}.yaml").read_text()
    assert not re.search(r"BEGIN [A-Z ]*PRIVATE KEY|ya29\.|AIza|hf_[A-Za-z]{8}|password", text)
    assert not any(world in text for world in WORLD)


def test_a_change_of_the_catalogue_is_seen_and_rendered(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalogue = copy / "clusters.toml"
    catalogue.write_text(catalogue.read_text().replace("head_disk_gb = 200", "head_disk_gb = 300"))
    (copy / "us-east1.yaml").unlink()
    assert main(["cluster", "render", "--check", "--folder", str(copy)]) == 1
    said = capsys.readouterr().err
    assert f"{copy / 'us-central2.yaml'} differs" in said
    assert f"{copy / 'us-east1.yaml'} missing" in said
    assert main(["cluster", "render", "--folder", str(copy)]) == 0
    assert f"{len(CLUSTERS) + 1} files, {len(CLUSTERS)} changed" in capsys.readouterr().out
    found = yaml.safe_load((copy / "us-central2.yaml").read_text())["available_node_types"]["head"]["node_config"]
    assert found["disks"][0]["initializeParams"]["diskSizeGb"] == 300
    assert main(["cluster", "render", "--check", "--folder", str(copy)]) == 0


def test_the_file_of_a_cluster_that_is_gone_is_removed_and_no_other_file(copy: Path) -> None:
    catalogue = copy / "clusters.toml"
    catalogue.write_text(catalogue.read_text().partition("[clusters.us-central1]")[0])
    (copy / "mine.yaml").write_text("mine: true\n")
    assert main(["cluster", "render", "--check", "--folder", str(copy)]) == 1
    assert main(["cluster", "render", "--folder", str(copy)]) == 0
    assert sorted(path.name for path in copy.glob("*.yaml")) == ["mine.yaml", "us-central2.yaml"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda copy: (copy / "cluster.yaml.jinja").unlink(), "does not exist. Restore it from git."),
        (lambda copy: (copy / "cluster.yaml.jinja").write_text("{{ cluster.nam }}"), "cannot be rendered"),
        (lambda copy: (copy / "clusters.toml").write_text(""), "no cluster. Add a table"),
    ],
)
def test_a_mistake_is_one_sentence_and_changes_nothing(
    copy: Path, change: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(copy)
    before = contents(copy)
    assert main(["cluster", "render", "--folder", str(copy)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert contents(copy) == before
