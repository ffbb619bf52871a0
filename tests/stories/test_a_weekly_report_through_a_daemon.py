"""The weekly report through a real daemon: its schedule materializes it, beside steps that have run and failed."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest
from dagster_processes import dagster_processes
from running import ROOT, wait_until

LOCATION = """
import sys
sys.path.insert(0, {support!r})
import dagster as dg
import toy_steps
from running import definitions_of
from toy_steps import toy
from marin_sensors.unsynced import unsynced
from marin_sensors.stale_leases import stale_leases
from marin_sensors.weekly_report import weekly_report

report, each_minute = weekly_report(cron="* * * * *", start=True)
defs = dg.Definitions.merge(
    definitions_of([toy("good"), toy("bad", toy_steps.fail)]),
    dg.Definitions(assets=[report], schedules=[each_minute], sensors=[unsynced(every_s=5), stale_leases(every_s=5)]),
)
"""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_it_says_what_ran(tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, location = tmp_path / "home", tmp_path / "location.py"
    home.mkdir()
    shutil.copy(ROOT / ".dagster/dagster.yaml", home)
    location.write_text(LOCATION.format(support=str(ROOT / "tests" / "support")))
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    env = {"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)}
    with dagster_processes(location, tmp_path, env) as dagster, dg.DagsterInstance.get() as instance:
        good, again = dagster.ui.launch("toy/good"), dagster.ui.launch("toy/good")
        bad = dagster.ui.launch("toy/bad")
        for run, ended in ((good, "SUCCESS"), (again, "SUCCESS"), (bad, "FAILURE")):
            wait_until(lambda run=run, ended=ended: dagster.ui.status(run) == ended, f"{run}: {ended}", timeout_s=300)  # type: ignore[misc]
        told = wait_until(lambda: report_of(instance, failed=1), "a report of all", timeout_s=200)
        assert (told["computed"].value, told["reused"].value) == (1, 1)
        rows = {str(record.data["asset"]): record.data for record in told["assets"].records}  # type: ignore[union-attr]
        assert (rows["toy/good"]["computed"], rows["toy/good"]["reused"], rows["toy/bad"]["failed"]) == (1, 1, 1)
        [failed] = told["runs that failed"].records  # type: ignore[union-attr]
        assert "the value 1 is not liked" in str(failed.data["why"])
        page = str(told["report"].value).removeprefix("/outputs/")  # where `marin-webserver` has it
        assert bad[:8] in (prefix / page).read_text()
        everything = dagster.ui.launch("toy/good", "weekly_report")
        wait_until(lambda: dagster.ui.status(everything) == "SUCCESS", "both in one run, by the UI", timeout_s=300)
        assert dagster.ui.unsynced()["weekly_report"] == "FRESH"


def report_of(instance: dg.DagsterInstance, *, failed: int) -> dict[str, dg.MetadataValue] | None:
    """What the last report says, if it has so many failed runs and everything before has ended."""
    event = instance.get_latest_materialization_event(dg.AssetKey("weekly_report"))
    materialization = event.asset_materialization if event is not None else None
    if materialization is None or materialization.metadata["failed_runs"].value != failed:
        return None
    return dict(materialization.metadata)
