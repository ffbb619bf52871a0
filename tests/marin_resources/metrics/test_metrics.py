"""The metrics of a real instance and a real prefix, as Prometheus reads them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pytest
from bucket_for_tests import BucketForTests
from dagster._core.definitions.metadata import MetadataValue, TableRecord
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from running import run_steps, wait_until
from toy_steps import fail, toy

from marin_assets.cli.main import main
from marin_resources.metrics.collector import MarinCollector

LEDGER = {"slices_waited_s": 5.0, "startup_s": 10.0, "kept_s": 60.0, "lost_s": 25.0}


def values(metrics: object) -> dict[str, float]:
    """Name and labels -> value: 'marin_steps_total{outcome="reused"}'."""
    found: dict[str, float] = {}
    for metric in metrics:  # type: ignore[attr-defined]
        assert isinstance(metric, Metric)
        for sample in metric.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


@pytest.fixture
def collector(instance: dg.DagsterInstance, prefix: Path) -> MarinCollector:
    return MarinCollector(instance, str(prefix))


def report(instance: dg.DagsterInstance, **metadata: object) -> None:
    """A materialization as a step on slices has it."""
    instance.report_runless_asset_event(dg.AssetMaterialization("model", metadata=metadata))  # type: ignore[arg-type]


def outcomes(found: Mapping[str, float]) -> dict[str, float]:
    return {name: found[f'marin_steps_total{{outcome="{name}"}}'] for name in ("computed", "reused", "failed")}


def test_steps_are_counted_by_outcome_from_when_it_begins(
    instance: dg.DagsterInstance, prefix: Path, shared_ray: None
) -> None:
    before = toy("before")
    assert run_steps([before], instance).success
    collector = MarinCollector(instance, str(prefix))
    assert outcomes(values(collector.collect())) == {"computed": 0, "reused": 0, "failed": 0}
    assert run_steps([before, toy("new")], instance).success
    assert not run_steps([toy("bad", fail)], instance).success
    for _ in range(2):  # what was counted is not counted again
        found = values(collector.collect())
        assert outcomes(found) == {"computed": 1, "reused": 1, "failed": 1}
    assert found['marin_runs_ended_total{status="success"}'] == 2
    assert found['marin_runs_ended_total{status="failure"}'] == 1
    assert found['marin_runs{status="started"}'] == 0


def test_the_ledgers_of_slices_become_goodput_and_ends_of_tries(
    instance: dg.DagsterInstance, collector: MarinCollector
) -> None:
    tries = MetadataValue.table([TableRecord({"end": end}) for end in ("preempted", "preempted", "returned")])
    report(instance, reused=False, tries=tries, transferred_bytes=7_000, queue_s=3.0, compute_s=9.5, **LEDGER)
    report(instance, reused=True, tries=tries, transferred_bytes=7_000, queue_s=3.0, compute_s=9.5, **LEDGER)
    found = values(collector.collect())
    assert found['marin_slice_seconds_total{phase="kept"}'] == 60
    assert sum(value for name, value in found.items() if name.startswith("marin_slice_seconds")) == 100
    assert found['marin_tries_total{end="preempted"}'] == 2
    assert found["marin_mirrored_bytes_total"] == 7_000
    assert found['marin_step_seconds_total{phase="queue"}'] == 3
    assert found['marin_step_seconds_total{phase="compute"}'] == 9.5


def computed(log: str, **metadata: object) -> dict[str, object]:
    """Metadata of what a run reports that has waited for an attempt."""
    return {"reused": False, "log": dg.MetadataValue.path(log), "duration_s": 200.0, "compute_s": 200.0, **metadata}


def test_an_output_that_several_runs_have_waited_for_is_computed_once(
    instance: dg.DagsterInstance, prefix: Path
) -> None:
    first = MarinCollector(instance, str(prefix))
    report(instance, **computed("/p/model-1/.marin/attempts/1.log"))
    assert outcomes(values(first.collect()))["computed"] == 1
    after_a_restart = MarinCollector(instance, str(prefix))
    report(instance, **computed("/p/model-1/.marin/attempts/1.log") | {"reused": True})
    report(instance, **computed("/p/model-1/.marin/attempts/1.log"))
    report(instance, **computed("/p/model-1/.marin/attempts/1.log"))
    for collector, count in ((first, 1), (after_a_restart, 0)):
        found = values(collector.collect())
        assert outcomes(found) == {"computed": count, "reused": 1, "failed": 0}
        assert found['marin_steps_total{outcome="attached"}'] == 2
        assert found['marin_step_seconds_total{phase="compute"}'] == 200 * count
    report(instance, **computed("/p/model-1/.marin/attempts/2.log"))
    report(instance, **computed("/p/model-1/.marin/attempts/1.log", duration_s=7.0))  # removed by hand, computed again
    assert outcomes(values(first.collect()))["computed"] == 3


def test_partitions_of_one_step_are_outputs_of_their_own(instance: dg.DagsterInstance, prefix: Path) -> None:
    collector = MarinCollector(instance, str(prefix))
    for key in ("a", "b", "a"):
        metadata = computed(f"/p/model-1/{key}/.marin/attempts/1.log")
        event = dg.AssetMaterialization("model", partition=key, metadata=metadata)  # type: ignore[arg-type]
        instance.report_runless_asset_event(event)
    found = values(collector.collect())
    assert outcomes(found)["computed"] == 2
    assert found['marin_steps_total{outcome="attached"}'] == 1


def test_more_events_than_one_query_reads_are_counted(
    instance: dg.DagsterInstance, collector: MarinCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_resources.metrics.steps.AT_ONCE", 3)
    for _ in range(7):
        report(instance, reused=True)
    assert outcomes(values(collector.collect()))["reused"] == 7


def test_a_store_that_does_not_answer_is_counted_and_the_rest_is_given(
    instance: dg.DagsterInstance, gcs_bucket: BucketForTests
) -> None:
    collector = MarinCollector(instance, gcs_bucket.prefix)
    well = values(collector.collect())
    assert well["marin_store_errors_total"] == 0
    assert well["marin_store_read_seconds"] > 0
    gcs_bucket.fail(status=403, times=None)
    ill = values(collector.collect())
    assert ill["marin_store_errors_total"] == 1
    assert "marin_store_read_seconds" not in ill
    assert ill['marin_source_up{source="store"}'] == 1
    assert ill['marin_runs{status="queued"}'] == 0


@pytest.mark.long
def test_a_store_that_is_slow_holds_no_scrape_up(
    instance: dg.DagsterInstance, gcs_bucket: BucketForTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_resources.metrics.collector.READ_LIMIT_S", 0.3)
    collector = MarinCollector(instance, gcs_bucket.prefix)
    gcs_bucket.delay(6)
    began_s = time.monotonic()
    for errors in (1, 2):  # one read is under way, and no second one begins
        slow = values(collector.collect())
        assert slow["marin_store_errors_total"] == errors
        assert slow['marin_runs{status="queued"}'] == 0
    assert time.monotonic() - began_s < 6
    wait_until(lambda: "marin_store_read_seconds" in values(collector.collect()), "the store")


def test_a_database_that_is_away_is_a_metric(
    instance: dg.DagsterInstance, collector: MarinCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise ConnectionError("the database is away")

    monkeypatch.setattr(type(instance), "get_runs_count", away)
    found = values(collector.collect())
    assert found['marin_source_up{source="runs"}'] == 0
    assert found['marin_source_up{source="steps"}'] == 1
    assert found["marin_store_errors_total"] == 0


def test_daemons_and_sensors_have_ages(instance: dg.DagsterInstance, collector: MarinCollector) -> None:
    from dagster._daemon.controller import debug_daemon_heartbeats

    debug_daemon_heartbeats(instance)
    found = values(collector.collect())
    [age] = [value for name, value in found.items() if name.startswith("marin_daemon_heartbeat_age_seconds{")]
    assert 0 <= age < 60


@pytest.mark.long
def test_the_command_serves_until_it_is_ended(instance: dg.DagsterInstance, prefix: Path) -> None:
    command = [sys.executable, "-m", "marin_assets.cli", "metrics", "--port", str(free_port())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout is not None
    address = process.stdout.readline().removeprefix("metrics at ").strip()
    with urllib.request.urlopen(address, timeout=60) as answer:
        families = {family.name for family in text_string_to_metric_families(answer.read().decode())}
    assert {"marin_steps", "marin_runs", "marin_store_errors", "marin_source_up"} <= families
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: process.poll() is not None, "the end")
    assert process.returncode == 0


def test_a_port_that_is_taken_is_refused_with_a_free_one(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["metrics", "--port", str(port)]) == 2
    assert f"marin metrics: port {port} is taken, maybe by another `marin metrics`." in capsys.readouterr().err


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
