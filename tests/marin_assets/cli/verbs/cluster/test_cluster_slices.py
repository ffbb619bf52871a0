"""`marin cluster add-worker, status, monitor, remove-worker`, against Google Cloud on loopback."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_google.server import FakeGoogle
from google_cloud import google_cloud, take_for_google
from running import wait_until

from marin_resources.clusters import catalogue
from marin_resources.clusters.catalogue import find_cluster
from marin_resources.ray_tpu.slices.bad_slices import report_bad_slice

Marin = Callable[..., tuple[int, str, str]]
JOINED = "marin_resources.infra.slices.cluster_members.hosts_of_slices"
CLUSTER = ("--cluster", "us-central2")


@pytest.fixture
def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGoogle]:
    with google_cloud(tmp_path) as google:
        take_for_google(google, monkeypatch)
        monkeypatch.setattr("marin_resources.infra.google.PAUSE_S", 0.0)
        monkeypatch.setattr(JOINED, lambda cluster: None)  # no head is up
        yield google


@pytest.fixture
def clusters(gcs_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed catalogue, but for the prefix of one cluster."""
    path = tmp_path / "clusters.toml"
    path.write_text(catalogue.default_path().read_text().replace("gs://marin-us-central2", gcs_prefix))
    monkeypatch.setenv("MARIN_CLUSTERS", str(path))
    return path


@pytest.fixture
def cluster(google: FakeGoogle, clusters: Path, marin: Marin) -> Marin:
    """`marin cluster …` of these clusters."""
    return lambda *arguments: marin("cluster", *arguments)


def slices(google: FakeGoogle) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in google.world.nodes)


def test_slices_are_added_shown_and_removed(
    google: FakeGoogle, cluster: Marin, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = cluster("add-worker", "v4-16", "--count", "2", *CLUSTER)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "us-central2 shall have 2 slices, of them 2 more of v4-16",
        "request us-central2-v4-16-0-1",
        "request us-central2-v4-16-1-1",
    ]
    assert slices(google) == ["us-central2-v4-16-0-1", "us-central2-v4-16-1-1"]

    code, out, _ = cluster("status", "us-central2")
    assert code == 1
    assert "the head at http://10.10.0.10:8265 does not answer; nobody keeps the slices: marin cluster monitor" in out
    assert re.search(r"us-central2-v4-16-0-1 +v4-16 +spot +is up +\?/2", out)

    monkeypatch.setattr(JOINED, lambda cluster: {"us-central2-v4-16-0-1": 2})
    code, out, _ = cluster("status", "us-central2", "--json")
    assert code == 0
    assert [(each["name"], each["state"], each["joined"]) for each in json.loads(out)["slices"]] == [
        ("us-central2-v4-16-0-1", "is up", 2),
        ("us-central2-v4-16-1-1", "is up", 0),
    ]

    code, out, _ = cluster("remove-worker", "us-central2", "us-central2-v4-16-0-1")
    assert (code, out) == (0, "delete us-central2-v4-16-0-1: not wanted\n")
    assert slices(google) == ["us-central2-v4-16-1-1"]


def test_a_dry_run_shows_the_requests_and_makes_none(google: FakeGoogle, cluster: Marin, gcs_prefix: str) -> None:
    code, out, _ = cluster("add-worker", "v4-64", "--reserved", "marin-v4", "--dry-run", *CLUSTER)
    name, _, body = out.partition("\n")
    assert (code, name) == (0, "us-central2-v4-64-0-1")
    assert json.loads(body)["reservationName"].endswith("/reservations/marin-v4")
    assert [call for call in google.world.calls if call.endswith(("create", "delete"))] == []
    assert cluster("status", "us-central2")[1].endswith(
        "no slice: marin cluster add-worker TYPE --cluster us-central2\n"
    )


def test_one_pass_replaces_a_preempted_slice(google: FakeGoogle, cluster: Marin) -> None:
    assert cluster("add-worker", "v4-8", *CLUSTER)[0] == 0
    google.tpu.preempt("us-central2-v4-8-0-1")
    code, out, _ = cluster("monitor", "us-central2", "--once")
    assert (code, out) == (0, "replace us-central2-v4-8-0-1: preempted, or deleted by hand\n")
    assert "is requested next" in cluster("status", "us-central2")[1]
    assert cluster("monitor", "us-central2", "--once")[1] == (
        "delete us-central2-v4-8-0-1: preempted, or deleted by hand\n"
    )
    assert cluster("monitor", "us-central2", "--once")[1] == "request us-central2-v4-8-0-2\n"
    assert cluster("monitor", "us-central2", "--once")[1] == "nothing is to be done\n"
    assert slices(google) == ["us-central2-v4-8-0-2"]


def test_a_slice_that_two_steps_report_is_drained_and_replaced(
    google: FakeGoogle, cluster: Marin, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cluster("add-worker", "v4-8", "--count", "2", *CLUSTER)[0] == 0
    monkeypatch.setenv("MARIN_BAD_SLICES", find_cluster("us-central2").bad_slices)  # as on its nodes
    now, used = time.time(), {"us-central2-v4-8-1-1"}
    monkeypatch.setattr("marin_resources.infra.slices.cluster_members.drain", lambda cluster, names: used)
    report_bad_slice("us-central2-v4-8-1-1", "a chip does not answer", "train/a", now=now - 1800)
    assert cluster("monitor", "us-central2", "--once")[1] == "nothing is to be done\n"
    report_bad_slice("us-central2-v4-8-1-1", "a chip does not answer", "train/b", now=now)
    assert cluster("monitor", "us-central2", "--once")[1] == (
        "drain us-central2-v4-8-1-1: bad host: a chip does not answer\n"
    )
    assert cluster("monitor", "us-central2", "--once")[1] == "nothing is to be done\n"
    assert "steps leave it since" in cluster("status", "us-central2")[1]
    used.clear()
    assert cluster("monitor", "us-central2", "--once")[1] == (
        "replace us-central2-v4-8-1-1: bad host: a chip does not answer\n"
    )


def test_what_google_refuses_is_said(google: FakeGoogle, cluster: Marin) -> None:
    del google.world.accounts["marin-worker@marin-example.iam.gserviceaccount.com"]
    code, _, err = cluster("add-worker", "v4-8", *CLUSTER)
    assert (code, err.count("\n")) == (1, 1)
    assert "Service account 'marin-worker@marin-example.iam.gserviceaccount.com' does not exist (HTTP 400)." in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add-worker"], "the following arguments are required: TYPE"),
        (["add-worker", "v4-9"], "The type of a slice is 'v4-9', which is no type of slice. Did you mean 'v4-8'"),
        (["add-worker", "v5p-64"], "Which cluster shall have v5p-64? --cluster us-central1 or us-east5."),
        (["add-worker", "v3-8"], "No cluster can have v3-8. Zones with it: "),
        (["add-worker", "v5p-8", *CLUSTER], "The cluster 'us-central2' is in us-central2-b and has slices of v4, so"),
        (["add-worker", "v4-8", "--cluster", "us"], "No cluster 'us' in "),
        (["add-worker", "v4-8", "--count", "0"], "--count is 0, expected 1 to 1000"),
        (["add-worker", "v4-8", "--spot", "--on-demand"], "not allowed with argument"),
        (["add-worker", "v4-8", "--reserved", ""], "--reserved is empty"),
        (["remove-worker", "us-central2", "x"], "us-central2 has no slice 'x', it has no slice"),
        (["monitor", "us-central2", "--every", "0"], "--every is 0, expected 1 to 240 seconds"),
        (["monitor", "us-centrla2"], "Did you mean 'us-central2'?"),
        (["status"], "the following arguments are required: name"),
    ],
)
def test_a_mistake_is_one_sentence_and_requests_nothing(
    google: FakeGoogle, cluster: Marin, arguments: list[str], said: str
) -> None:
    code, out, err = cluster(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert google.world.calls == []


def test_without_google_one_sentence(cluster: Marin, google: FakeGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    code, out, err = cluster("add-worker", "v4-8", *CLUSTER)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "no answer" in err


@pytest.mark.long
def test_the_monitor_brings_slices_back_until_it_is_told_to_end(google: FakeGoogle, cluster: Marin) -> None:
    assert cluster("add-worker", "v4-8", *CLUSTER)[0] == 0
    command = [sys.executable, "-m", "marin_assets.cli", "cluster", "monitor", "us-central2", "--every", "1"]
    monitor = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_until(lambda: "controller" in cluster("status", "us-central2", "--json")[1], "the status")
        google.tpu.preempt("us-central2-v4-8-0-1")
        wait_until(lambda: slices(google) == ["us-central2-v4-8-0-2"], "the next slice")
        assert "keeps the slices" in cluster("status", "us-central2")[1]
        monitor.send_signal(signal.SIGTERM)
        out, _ = monitor.communicate(timeout=60)
    finally:
        monitor.kill()
    assert monitor.returncode == 0, out
    assert "replace us-central2-v4-8-0-1: preempted, or deleted by hand" in out
    assert "nobody keeps the slices" in cluster("status", "us-central2")[1]  # it has let go
