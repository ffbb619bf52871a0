"""The sensor on logs that wait for the bucket: it stores them when no run begins, and says what still waits."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from bucket_for_tests import BucketForTests

from marin_resources.dagster_fixes.compute_logs import objects
from marin_sensors.waiting_logs import waiting_logs

HOME = """
telemetry: {{enabled: false}}
compute_logs:
  module: marin_resources.dagster_fixes.compute_logs.manager
  class: StoredComputeLogManager
  config: {{prefix: {prefix!r}, local_dir: {local!r}}}
"""
KEY = ["a-run", "compute_logs", "abc"]


def tick(instance: dg.DagsterInstance) -> str:
    skipped = waiting_logs()(dg.build_sensor_context(instance=instance))
    assert isinstance(skipped, dg.SkipReason)
    return str(skipped.skip_message)


def test_what_an_ended_process_has_left_is_stored_when_the_bucket_is_back(
    gcs_bucket: BucketForTests, tmp_path: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "REQUEST_S", 1.0)
    local = tmp_path / "local"
    (dagster_home / "dagster.yaml").write_text(HOME.format(prefix=gcs_bucket.prefix, local=str(local)))
    file = local / "a-run/compute_logs/abc.out"
    file.parent.mkdir(parents=True)
    file.write_text("the last words\n")
    file.with_suffix(".complete").touch()
    gcs_bucket.drop(times=None)
    with dg.DagsterInstance.get() as instance:
        told = tick(instance)
        assert told.startswith(f"1 logs wait on this machine: '{gcs_bucket.prefix}/.marin/logs/a-run/"), told
        gcs_bucket.calm()
        assert tick(instance) == f"1 logs were stored in {gcs_bucket.prefix}/.marin/logs; 0 wait."
        assert not file.exists()
        assert instance.compute_log_manager.get_log_data(KEY).stdout == b"the last words\n"


def test_on_a_laptop_there_is_nothing_to_do(instance: dg.DagsterInstance) -> None:
    assert "Logs stay on this machine" in tick(instance)
