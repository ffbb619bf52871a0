"""`marin cluster project`, against a Google Cloud on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_google.server import FakeGoogle, fake_google
from fake_google.world import World
from fleets import write_catalogue
from google_cloud import take_for_google

from marin_assets.cli.main import main

OPERATOR = ("--operator", "group:operators@example.org")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGoogle]:
    monkeypatch.setenv("MARIN_CLUSTERS", str(write_catalogue(tmp_path)))
    with fake_google(tmp_path, World(enabled=set())) as google:
        take_for_google(google, monkeypatch)
        yield google


@pytest.mark.long
def test_an_empty_project_gets_what_the_clusters_need(empty: FakeGoogle, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "project", "--dry-run", *OPERATOR]) == 0
    looked = capsys.readouterr().out
    assert empty.world.things == {}
    assert "create firewall marin-ssh-by-iap\n" in looked
    assert "create a token in secret RAY_AUTH_TOKEN\n" in looked
    assert looked.endswith(" are missing in the project marin-example, 0 differ\n")

    assert main(["cluster", "project", "--yes", *OPERATOR]) == 0
    done = capsys.readouterr()
    assert "creating subnetwork marin in us-east5\n" in done.out
    assert empty.world.secrets["RAY_AUTH_TOKEN"] not in done.out + done.err
    assert done.out.count("\n") == looked.count("\n")

    empty.world.things["b/west"]["iamConfiguration"]["publicAccessPrevention"] = "inherited"
    assert main(["cluster", "project", "--yes", *OPERATOR]) == 1
    again = capsys.readouterr()
    assert again.out == "0 created in the project marin-example, 1 differ\n"
    assert (
        "bucket west differs: iamConfiguration.publicAccessPrevention is 'inherited', expected 'enforced'" in again.err
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "look with --dry-run, then create what is missing with --yes."),
        (["--yes", "--dry-run"], "look with --dry-run, then create what is missing with --yes."),
        (["--yes", "--operator", "me@example.org"], "--operator is 'me@example.org', expected a member as IAM has it"),
        (["--yes", "--operator", "user:me"], "--operator is 'user:me', expected a member as IAM has it"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "project", *words]) == 2
    assert said in capsys.readouterr().err
