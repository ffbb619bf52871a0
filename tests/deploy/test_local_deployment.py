"""The folder of a rehearsal: what is partial or damaged is told, and removed."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from local_deployment.layout import (
    EXPERIMENTS,
    DeploymentError,
    claim_folder,
    find_layout,
    keep_layout,
    new_layout,
)
from local_deployment.lifecycle import down, up
from running import ROOT


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "a folder").mkdir()
    return tmp_path / "a folder" / "deployment"


def make(home: Path) -> None:
    claim_folder(home)
    keep_layout(new_layout(home, 8080, EXPERIMENTS))


def test_a_layout_is_found_again_with_its_secrets_for_its_owner_alone(home: Path) -> None:
    claim_folder(home)
    layout = new_layout(home, 8080, EXPERIMENTS)
    assert find_layout(home) is None, "it is made when the layout is kept"
    keep_layout(layout)
    assert find_layout(home) == layout
    assert {path.stat().st_mode & 0o077 for path in layout.secret_path("").iterdir()} == {0}
    assert layout.secret("postgres") in layout.environment()["MARIN_POSTGRES_URL"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id": 1}', '{"experiments": 3}'])
def test_a_damaged_one_is_one_sentence_and_is_removed(home: Path, text: str) -> None:
    make(home)
    (home / "layout.json").write_text(text)
    with pytest.raises(DeploymentError, match="does not say where the deployment is"):
        up(home, 8080)
    assert down(home)
    assert not home.exists()


def test_what_a_killed_start_has_left_is_removed(home: Path) -> None:
    claim_folder(home)
    new_layout(home, 8080, EXPERIMENTS)
    assert down(home)
    assert not home.exists()
    assert not down(home)


@pytest.mark.parametrize(("port", "experiments"), [(8081, EXPERIMENTS), (8080, ROOT / "docs")])
def test_another_port_or_other_experiments_are_refused(home: Path, port: int, experiments: Path) -> None:
    make(home)
    with pytest.raises(DeploymentError, match=r"is at port 8080 with the experiments of .* Remove it first"):
        up(home, port, experiments)
    assert down(home)


@pytest.mark.parametrize("of", [up, lambda home, port: down(home)], ids=["up", "down"])
def test_nothing_is_removed_from_a_folder_that_no_deployment_made(home: Path, of) -> None:
    (home / "logs").mkdir(parents=True)
    (home / "logs/mine").touch()
    with pytest.raises(DeploymentError, match="no deployment made it"):
        of(home, 8080)
    assert (home / "logs/mine").exists()


def test_a_port_that_is_taken_is_one_sentence(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DeploymentError, match=f"cannot listen at port {port} .*DEPLOY_PORT"):
            up(home, port)
    assert down(home)
