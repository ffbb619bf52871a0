"""The wait for hosts with devices: a mistaken request fails, and a step whose slice was taken away waits."""

from __future__ import annotations

from typing import Any

import pytest

from marin_resources.hardware.resources import tpu
from marin_resources.ray_tpu.cluster.settings import NODE_TYPES_VARIABLE, START_TIMEOUT_VARIABLE
from marin_resources.ray_tpu.job import host_wait
from marin_resources.ray_tpu.job.host_wait import HostWait
from marin_resources.ray_tpu.ray_options import UnmeetableError
from marin_resources.types.output import Output
from marin_resources.wire.task import Task

TASK = Task(
    output=Output(name="raw/x", version="abc123", identity="a" * 64),
    prefix="/p",
    path="/p/raw/x",
    fn="json:dumps",
    config={},
    resources=tpu("v4-16"),
)
HOST = {"TPU-v4-16-head": 1.0, "TPU": 4.0, "CPU": 8.0}


class FakeRay:
    """A cluster whose nodes the test changes."""

    def __init__(self, *nodes: dict[str, float]) -> None:
        self.there = list(nodes)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": node} for node in self.there]

    def cluster_resources(self) -> dict[str, float]:
        return {name: sum(node.get(name, 0) for node in self.there) for node in self.there for name in node}

    def available_resources(self) -> dict[str, float]:
        return {}


class Waiting:
    """A wait, and a clock that stands still until the test moves it."""

    def __init__(self, ray: FakeRay, monkeypatch: pytest.MonkeyPatch, *, has_run: bool) -> None:
        self.now_s = 1000.0
        monkeypatch.setenv(START_TIMEOUT_VARIABLE, "600")
        monkeypatch.delenv(NODE_TYPES_VARIABLE, raising=False)
        monkeypatch.setattr(host_wait.time, "monotonic", lambda: self.now_s)
        self.wait = HostWait(TASK, ray, has_run=has_run)

    def after(self, seconds: float) -> None:
        self.now_s += seconds
        self.wait.check()


def test_a_step_whose_slice_was_taken_away_waits_for_days_and_says_since_when(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = Waiting(FakeRay({"CPU": 2.0}), monkeypatch, has_run=True)
    for seconds in (0, 6, 600, 3 * 86400):
        waiting.after(seconds)
    lines = capsys.readouterr().out.splitlines()
    since = f"since {waiting.wait._since:%Y-%m-%d %H:%M:%S} UTC"
    free = "free in the cluster: 0 of 0 TPU-v4-16-head, 0 of 2 CPU, 0 of 0 TPU"
    end = "no node has all of it now: it has run before, and waits without limit"
    assert lines == [
        f"waiting for 1 CPU, 1 slice(s) of TPU v4-16 for {waited} s, {since}; {free}; {end}"
        for waited in (6, 606, 259806)
    ]


def test_the_line_names_the_bad_hosts_that_the_step_does_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = Waiting(FakeRay(HOST), monkeypatch, has_run=False)
    waiting.wait.avoided = {f"a/{n}": "TPU initialization failed" for n in range(4)}
    waiting.after(6)
    assert capsys.readouterr().out.endswith(
        "; avoided as bad: a/0 (TPU initialization failed), a/1 (TPU initialization failed), a/2 (TPU initialization "
        "failed) and 1 more, see marin cluster bad-hosts\n"
    )


def test_a_step_that_never_had_its_hosts_fails_when_no_node_has_had_them_for_the_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ray = FakeRay(HOST)
    waiting = Waiting(ray, monkeypatch, has_run=False)
    waiting.after(86400)  # the cluster is busy
    assert "no node" not in capsys.readouterr().out
    ray.there = [{"CPU": 2.0}]
    waiting.after(590)
    assert capsys.readouterr().out.endswith("; no node has all of it now: it fails in 10 s\n")
    with pytest.raises(UnmeetableError, match=r"Step 'raw/x' requests .*, which no node here has: .*TPU-v4-16-head 1"):
        waiting.after(11)
