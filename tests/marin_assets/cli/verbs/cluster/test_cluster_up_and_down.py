"""`marin cluster up, down, clean, ssh, dashboard`: Ray's own launcher, against Google Cloud on loopback.

What it would run on a head through ssh is noted by a program in place of ssh, which answers as a head with docker does.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_google.server import FakeGoogle
from google_cloud import TOKEN, google_cloud
from running import ROOT

STUBS = ROOT / "tests/support/on_a_head"
NAME = "us-central2"


@dataclass
class Desk:
    """Where a person sits: a terminal, a Google Cloud, a catalogue."""

    google: FakeGoogle
    folder: Path
    environment: dict[str, str]

    def marin(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "marin_assets.cli", "cluster", *arguments],
            env={**os.environ, **self.environment, **more},
            text=True,
            capture_output=True,
            timeout=240,
            check=False,
        )

    @property
    def on_the_head(self) -> str:
        """What ssh and rsync were told."""
        log = self.folder / "ssh.log"
        return log.read_text() if log.exists() else ""

    def machines(self) -> list[str]:
        return sorted(path.rpartition("/")[2].rpartition("-")[0][:-9] for path in self.google.world.instances)

    def slices(self) -> list[str]:
        return sorted(path.rpartition("/")[2] for path in self.google.world.nodes)


@pytest.fixture
def desk(tmp_path: Path, gcs_prefix: str) -> Iterator[Desk]:
    catalogue = tmp_path / "clusters.toml"
    text = (ROOT / "infra/clusters.toml").read_text().replace("gs://marin-us-central2", gcs_prefix)
    catalogue.write_text(text.replace('type = "v4-8", count = 8', 'type = "v4-8", count = 2'))
    with google_cloud(tmp_path) as google:
        environment = {
            **google.environment,
            "HOME": str(tmp_path),
            "PATH": f"{STUBS}:{os.environ['PATH']}",
            "SSH_LOG": str(tmp_path / "ssh.log"),
            "SSH_IMAGE": "us-central2-docker.pkg.dev/marin-example/marin/cluster:latest",
            "MARIN_CLUSTERS": str(catalogue),
        }
        desk = Desk(google, tmp_path, environment)
        assert desk.marin("render").returncode == 0
        yield desk


@pytest.mark.long
def test_a_cluster_comes_up_and_goes_down_and_leaves_nothing(desk: Desk) -> None:
    done = desk.marin("up", NAME)
    assert done.returncode == 0, done.stdout + done.stderr
    assert desk.machines() == ["ray-us-central2-head"]
    assert desk.slices() == ["us-central2-v4-64-2-1", "us-central2-v4-8-0-1", "us-central2-v4-8-1-1"]
    assert "the dashboard of us-central2 is http://10.10.0.10:8265" in done.stdout
    assert "marin cluster auth" in desk.on_the_head
    assert "docker pull us-central2-docker.pkg.dev/marin-example/marin/cluster:latest" in desk.on_the_head
    assert "RAY_USAGE_STATS_ENABLED=0" in desk.on_the_head
    assert "RAY_USAGE_STATS_ENABLED=1" not in desk.on_the_head
    assert TOKEN not in desk.on_the_head + done.stdout + done.stderr
    keys = list((desk.folder / ".ssh").glob("ray-autoscaler*[0-9]"))
    assert [stat.S_IMODE(key.stat().st_mode) for key in keys] == [0o600]

    again = desk.marin("up", NAME)  # the head is there, and the slices
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.endswith("nothing is to be done\n")
    assert len(desk.machines()) == 1

    down = desk.marin("down", NAME, "--yes")
    assert down.returncode == 0, down.stdout + down.stderr
    assert desk.google.world.instances == desk.google.world.nodes == desk.google.world.queued == {}


def test_a_dry_run_prints_the_commands_and_does_nothing(desk: Desk) -> None:
    up, down = desk.marin("up", NAME, "--dry-run"), desk.marin("down", NAME, "--dry-run")
    assert (up.returncode, down.returncode) == (0, 0), up.stderr + down.stderr
    file = desk.folder / "us-central2.yaml"
    ray = Path(sys.executable).with_name("ray")
    assert f"RAY_USAGE_STATS_ENABLED=0 {ray} up --yes --no-config-cache {file}\n" in up.stdout
    assert "request us-central2-v4-8-0-1 (spot)\n" in up.stdout
    assert "request us-central2-v4-64-2-1 (marin-v4)\n" in up.stdout
    assert down.stdout == f"RAY_USAGE_STATS_ENABLED=0 {ray} down --yes {file}\n"
    assert desk.google.world.calls == []


@pytest.mark.long
def test_a_restart_makes_the_head_anew_and_leaves_the_slices(desk: Desk) -> None:
    assert desk.marin("up", NAME).returncode == 0
    head, slices = desk.google.world.instances.copy(), desk.slices()
    done = desk.marin("restart", NAME, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert desk.machines() == ["ray-us-central2-head"]
    assert desk.google.world.instances.keys().isdisjoint(head)
    assert desk.slices() == slices


@pytest.mark.long
def test_a_head_that_does_not_come_up_has_no_slices(desk: Desk) -> None:
    for account in list(desk.google.world.accounts):
        if account.startswith("marin-head@"):
            del desk.google.world.accounts[account]
    done = desk.marin("up", NAME)
    assert done.returncode == 1
    assert "No slice is requested." in done.stderr
    assert desk.slices() == []


@pytest.mark.long
def test_what_nobody_has_is_shown_and_cleaned(desk: Desk) -> None:
    assert desk.marin("add-worker", "v4-8", "--count", "2", "--cluster", NAME).returncode == 0
    catalogue = Path(desk.environment["MARIN_CLUSTERS"])
    catalogue.write_text(_other_prefix(catalogue.read_text()))  # where no file of wanted slices is
    shown = desk.marin("clean", NAME)
    assert shown.stdout.splitlines() == [
        "would delete us-central2-v4-8-0-1: no file has it",
        "would delete us-central2-v4-8-1-1: no file has it",
    ]
    assert len(desk.slices()) == 2
    assert desk.marin("clean", NAME, "--yes").returncode == 0
    assert desk.google.world.nodes == desk.google.world.queued == {}
    assert desk.marin("clean", NAME).stdout == "nothing is left\n"


def _other_prefix(text: str) -> str:
    """The catalogue with another prefix of the first cluster."""
    first = next(line for line in text.splitlines() if line.startswith("prefix = "))
    return text.replace(first, f'{first[:-1]}/other"', 1)


def test_a_shell_and_the_dashboard_go_through_the_proxy_of_google(desk: Desk) -> None:
    ray, file = Path(sys.executable).with_name("ray"), desk.folder / "us-central2.yaml"
    assert f"{ray} attach {file}\n" in desk.marin("ssh", NAME, "--dry-run").stdout
    assert f"{ray} dashboard --port 8265 {file}\n" in desk.marin("dashboard", NAME, "--dry-run").stdout
    shown = desk.marin("ssh", NAME, "us-central2-v4-64-2-1", "--worker", "3", "--dry-run").stdout
    assert "gcloud compute tpus tpu-vm ssh us-central2-v4-64-2-1 --project=marin-example --zone=us-central2-b" in shown
    assert "--worker=3 --tunnel-through-iap" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["restart", NAME], "all jobs on us-central2 are interrupted. Pass --yes, or look with --dry-run."),
        (["restart", "us-central", "--yes"], "No cluster 'us-central' in"),
        (["down", NAME], "all jobs on us-central2 end. Pass --yes, or look with --dry-run."),
        (["up", "us-central"], "No cluster 'us-central' in"),
        (["ssh", NAME, "--worker", "1"], "--worker is of a slice. Name the slice."),
        (["up", "us-east1"], "'"),
    ],
)
def test_a_mistake_is_one_sentence(desk: Desk, arguments: list[str], said: str) -> None:
    if arguments == ["up", "us-east1"]:
        said = "us-east1.yaml' is not as the catalogue says. Look at what changes: marin cluster render."
        (desk.folder / "us-east1.yaml").write_text("cluster_name: mine\n")
    done = desk.marin(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert desk.google.world.calls == []
