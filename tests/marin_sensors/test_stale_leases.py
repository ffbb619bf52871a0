"""The sensor on outputs that are left half made, ticked by hand; their workers are real processes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import dagster as dg
import pytest
from abandoned import kill, worker_of
from partition_steps import part
from running import definitions_of
from sensor_words import what_is_there, what_was_new
from webhooks import Webhook

from marin_assets.step.graph import Node, build_graph
from marin_assets.step.partitions.sets import static
from marin_resources.storage.output.store import Store
from marin_sensors import stale_leases as module
from marin_sensors.stale_leases import stale_leases

NOTHING = "No output is left half made. 0 under way."


class Clock:
    """The time of the sensor's machine."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def time(self) -> float:
        return self.now_s


class Deployment:
    """A step and one with partitions, and the sensor."""

    def __init__(self, instance: dg.DagsterInstance, prefix: str, calls: Path) -> None:
        steps = [part("raw", None, calls), part("each", static("a", "b"), calls)]
        self.raw, each = build_graph(steps)
        self.partition = each.at("a")
        self.cursor: str | None = None
        self._instance, self._prefix = instance, prefix
        self._definitions, self._sensor = definitions_of(steps), stale_leases()

    def tick(self) -> str:
        """What the sensor says."""
        context = dg.build_sensor_context(instance=self._instance, cursor=self.cursor, definitions=self._definitions)
        skipped = self._sensor(context)
        assert isinstance(skipped, dg.SkipReason)
        self.cursor = context.cursor
        self.last = what_was_new(str(skipped.skip_message))
        return what_is_there(str(skipped.skip_message))

    def claim(self, node: Node) -> subprocess.Popen[str]:
        return worker_of(self._prefix, node.output)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def deployment(
    instance: dg.DagsterInstance,
    disk_or_gcs_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
) -> Deployment:
    monkeypatch.setenv("MARIN_PREFIX", disk_or_gcs_prefix)
    return Deployment(instance, disk_or_gcs_prefix, tmp_path / "calls")


def test_an_output_whose_worker_was_killed_is_told_once(deployment: Deployment, clock: Clock, webhook: Webhook) -> None:
    assert deployment.tick() == NOTHING
    workers = [deployment.claim(node) for node in (deployment.raw, deployment.partition)]
    for _ in range(2):
        said = deployment.tick()
        assert said == "No output is left half made. 2 under way."
    for worker in workers:
        kill(worker)
    deployment.tick()
    clock.now_s += 7200
    said = deployment.tick()
    for label in ("parts/raw", "parts/each[a]"):
        assert f"The worker of {label} at " in said
        assert f"Materialize {label} again: it continues from there." in said
    for _ in range(2):
        clock.now_s += 600
        deployment.tick()
    assert len(webhook.texts) == 2
    assert deployment.last == "The last new one: parts/raw, 1970-01-12 15:46 UTC."
    assert webhook.texts[0].startswith("*An output is left half made*\nThe worker of parts/")


def test_an_output_that_is_made_meanwhile_is_not_told(
    deployment: Deployment, clock: Clock, disk_or_gcs_prefix: str
) -> None:
    worker = deployment.claim(deployment.raw)
    kill(worker)
    deployment.tick()
    clock.now_s += 7200
    assert "left half made" not in deployment.tick()
    store, node = Store(disk_or_gcs_prefix), deployment.raw
    stale = store.look([node.output])[node.output].holder
    claim = store.claim(
        node.output, attempt=2, resumable=False, run_id=None, stale_lease=stale.generation if stale else None
    )
    clock.now_s += 600
    assert deployment.tick() == "No output is left half made. 1 under way.", "another worker goes on"
    store.publish(claim, {"version": node.version.as_dict(), "name": node.name}, {})
    clock.now_s += 7200
    assert deployment.tick() == NOTHING


def test_a_clock_that_is_set_back_and_a_foreign_cursor_tell_nothing_wrong(deployment: Deployment, clock: Clock) -> None:
    worker = deployment.claim(deployment.raw)
    kill(worker)
    deployment.tick()
    clock.now_s -= 7200
    assert deployment.tick() == "No output is left half made. 1 under way."
    deployment.cursor = "nonsense"
    clock.now_s += 7200
    assert deployment.tick() == "No output is left half made. 1 under way.", "it watches anew"
