"""`marin cluster auth`: the token goes from Secret Manager into a file of its owner, and is shown nowhere."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_google.server import FakeGoogle
from google_cloud import TOKEN, google_cloud, take_for_google

from marin_resources.ray_tpu.cluster.api import token

Marin = Callable[..., tuple[int, str, str]]
SECRET = "projects/marin-example/secrets/RAY_AUTH_TOKEN"


@pytest.fixture
def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGoogle]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    monkeypatch.setattr(token, "_SECRETS", {})
    monkeypatch.setattr("marin_resources.configuration.secret_manager.PAUSE_S", 0.0)
    with google_cloud(tmp_path) as google:
        take_for_google(google, monkeypatch)
        yield google


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "home/.ray/auth_token"


def test_the_token_of_a_cluster_is_where_ray_looks(google: FakeGoogle, marin: Marin, place: Path) -> None:
    code, out, err = marin("cluster", "auth", "us-central2")
    assert (code, err) == (0, "")
    assert place.read_text() == TOKEN
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert out == f"wrote the token to {place}. Ray sends it with RAY_AUTH_MODE=token\n"


def test_a_node_takes_the_secret_of_its_environment_and_a_file_that_was_open_is_closed(
    google: FakeGoogle, marin: Marin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "token"
    place.write_text("the old one")
    place.chmod(0o644)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(place))
    monkeypatch.setenv("MARIN_CLUSTER_TOKEN_SECRET", SECRET)
    assert marin("cluster", "auth")[0] == 0
    assert place.read_text() == TOKEN
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_secret_that_is_not_there_leaves_the_old_token(google: FakeGoogle, marin: Marin, place: Path) -> None:
    assert marin("cluster", "auth", "--secret", SECRET)[0] == 0
    code, out, err = marin("cluster", "auth", "--secret", SECRET.replace("TOKEN", "TOKNE"))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "RAY_AUTH_TOKNE" in err
    assert place.read_text() == TOKEN


def test_a_secret_that_is_no_token_is_not_shown(google: FakeGoogle, marin: Marin, place: Path) -> None:
    google.world.secrets["RAY_AUTH_TOKEN"] = "two words"
    code, out, err = marin("cluster", "auth", "us-central2")
    assert (code, out, place.exists()) == (1, "", False)
    assert "cannot be one, expected letters and digits on one line" in err
    assert "two words" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "got no secret. Name the cluster, or pass --secret, or set MARIN_CLUSTER_TOKEN_SECRET"),
        (["us-central3"], "No cluster 'us-central3' in"),
        (["us-central2", "--secret", SECRET], "got a cluster and --secret, expected one of them"),
        (["--secret", "RAY_AUTH_TOKEN"], "the secret is 'RAY_AUTH_TOKEN', expected projects/PROJECT/secrets/NAME"),
    ],
)
def test_a_mistake_is_one_sentence(
    google: FakeGoogle, marin: Marin, place: Path, arguments: list[str], said: str
) -> None:
    code, out, err = marin("cluster", "auth", *arguments)
    assert (code, out, err.count("\n"), place.exists()) == (2, "", 1, False)
    assert said in err
