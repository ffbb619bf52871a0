"""The weekly report, materialized in a real instance from its history, a real store and what was used there."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.job_base import RepoBackedJob
from dagster._core.execution.api import create_execution_plan, execute_run
from one_sentence import one_sentence
from partition_steps import part
from running import definitions_of
from sensor_words import what_is_there
from toy_steps import toy
from usage_lab import HOUR, Lab, move

from marin_assets.assets.factory import asset_key
from marin_assets.step.graph import build_graph
from marin_assets.step.partitions.sets import static
from marin_assets.step.step import Step
from marin_assets.step.values import versioned
from marin_resources.hardware.resources import gpu
from marin_resources.storage.control import control
from marin_resources.storage.files import read_bytes
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.storage.usage.entries import FOLDER
from marin_sensors.queries.materialized_versions import steps_of
from marin_sensors.stale_leases import stale_leases
from marin_sensors.unsynced import find_unsynced, unsynced
from marin_sensors.weekly.run_history import Ran, read_week
from marin_sensors.weekly_report import weekly_report

KEY = dg.AssetKey("weekly_report")


class Deployment:
    """Steps, the report beside them, and Dagster's history."""

    def __init__(self, instance: dg.DagsterInstance, steps: Sequence[Step] = (), **options: Any) -> None:
        self.instance = instance
        self.report, self.schedule = weekly_report(**options)
        breaks = dg.define_asset_job("breaks", dg.AssetSelection.assets(broken))
        own = dg.Definitions(assets=[self.report, broken], schedules=[self.schedule], jobs=[breaks])
        self.repository = dg.Definitions.merge(definitions_of(steps), own).get_repository_def()

    def materialized(self, asset: str, count: int = 1, **metadata: Any) -> None:
        """Events of an asset in the history."""
        for _ in range(count):
            self.instance.report_runless_asset_event(dg.AssetMaterialization(asset.split("/"), metadata=metadata))

    def run(self, job_name: str, config: dict[str, Any] | None = None) -> dg.DagsterRun:
        """A run in this process, of a job as the code server has it."""
        job = RepoBackedJob(job_name, self.repository)
        plan = create_execution_plan(job, config or {})
        run = self.instance.create_run_for_job(job.get_definition(), run_config=config, execution_plan=plan)
        execute_run(job, run, self.instance)
        found = self.instance.get_run_by_id(run.run_id)
        assert found is not None
        return found

    def fail(self) -> str:
        return self.run("breaks").run_id

    def make(self, until: str = "") -> dict[str, Any]:
        """The metadata of a materialization of the report."""
        run = self.run("weekly_report_job", {"ops": {"weekly_report": {"config": {"until": until}}}})
        assert run.is_success, failure(self.instance, run.run_id)
        event = self.instance.get_latest_materialization_event(KEY)
        assert event is not None
        assert event.asset_materialization is not None
        return dict(event.asset_materialization.metadata)


@dg.asset(key=["toy", "broken"])
def broken() -> None:
    raise dg.Failure("it leaks", metadata={"error": "The step 'toy/<broken>' failed: it leaks."})


def failure(instance: dg.DagsterInstance, run_id: str) -> str:
    [event] = [
        entry.dagster_event
        for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        if entry.dagster_event
    ]
    data = event.step_failure_data
    return str(data.user_failure_data.metadata["error"].value) if data.user_failure_data else str(data.error)


def rows(metadata: dict[str, Any], table: str) -> list[tuple[Any, ...]]:
    columns = [column.name for column in metadata[table].schema.columns]
    return [tuple(record.data[column] for column in columns) for record in metadata[table].records]


def now() -> datetime.datetime:
    time.sleep(0.01)  # events have a time of their own
    found = datetime.datetime.now(datetime.UTC)
    time.sleep(0.01)
    return found


def test_what_hours_cost_is_told_where_prices_are_declared(
    instance: dg.DagsterInstance, disk_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", disk_prefix)
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "H100=2.5@2026-01-01")
    there, lab = Deployment(instance, [toy("b")]), Lab(disk_prefix)
    lab.ran("toy/b", gpu("H100", 2), now() - 3 * HOUR, 2)
    lab.ran("toy/b", gpu("A100"), now() - 3 * HOUR, 1, attempt=2)
    shown = there.make()
    assert rows(shown, "assets")[0][:3] == ("toy/b", 5.0, 10.0)
    assert rows(shown, "prices") == [("H100", 2.5, "2026-01-01")]
    assert shown["dollars"].value == 10.0
    assert "5.0 device hours for $10.00 (gpu_A100 1.0, gpu_H100 4.0)." in shown["summary"].value
    assert "No price is declared for the device hours of gpu_A100" in shown["unknown"].value
    page = read_bytes(join(disk_prefix, "reports/weekly", f"{shown['until'].value[:10]}.html")).decode()
    assert "dollars an hour" in page
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "H200")
    run = there.run("weekly_report_job")
    assert failure(instance, run.run_id).startswith("MARIN_DEVICE_PRICES has 'H200', expected device=dollars@day")


def test_a_week_is_counted_and_told(instance: dg.DagsterInstance, disk_or_gcs_prefix: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("MARIN_PREFIX", disk_or_gcs_prefix)
    there = Deployment(instance, [toy("a"), toy("b")], ui="https://dagster.example.org/")
    there.materialized("toy/a", 3, reused=False, compute_s=1800.0)
    there.materialized("toy/a", 2, reused=True, compute_s=1800.0)
    there.materialized("by/hand")
    there.materialized("on/slices", 2, reused=False, slices_waited_s=10.0, startup_s=10, kept_s=75.0, lost_s=5.0)
    there.materialized("on/slices", reused=True, slices_waited_s=10.0, startup_s=10, kept_s=75.0, lost_s=5.0)
    run_id = there.fail()
    lab = Lab(disk_or_gcs_prefix)
    lab.ran("toy/b[key]", gpu("H100", 2), now() - 3 * HOUR, 2)
    path = lab.begin("gone/step", gpu("H100"), now() - 3 * HOUR, moved_bytes=0)
    move(path, 5 * 10**9)
    lab.end(path, now() - 2 * HOUR)
    shown = there.make()
    assert list(shown)[:4] == ["summary", "report", "assets", "runs that failed"]
    assert rows(shown, "assets") == [
        ("toy/b", 4.0, 0.0, 0, 0, 0, 0.0, ""),
        ("gone/step", 1.0, 0.0, 0, 0, 0, 5.0, ""),
        ("toy/a", 0.0, 1.5, 3, 2, 0, 0.0, ""),
        ("by/hand", 0.0, 0.0, 1, 0, 0, 0.0, ""),
        ("on/slices", 0.0, 0.0, 2, 1, 0, 0.0, "75 %"),
        ("toy/broken", 0.0, 0.0, 0, 0, 1, 0.0, ""),
    ]
    [failed] = rows(shown, "runs that failed")
    assert failed[1:] == (run_id[:8], "toy/broken", "The step 'toy/<broken>' failed: it leaks.")
    numbers = {
        "runs": 1,
        "failed_runs": 1,
        "computed": 6,
        "reused": 3,
        "failed": 1,
        "hours": 1.5,
        "transferred_gb": 5.0,
    }
    numbers |= {"device_hours": 5.0, "device_hours_gpu_H100": 5.0, "unsynced": 0}
    assert {name: shown[name].value for name in numbers} == numbers
    summary = shown["summary"].value
    assert summary.endswith(
        "1 run ended, 1 failed. 6 outputs computed in 1.5 h, 3 reused. 5.0 device hours (gpu_H100 5.0). 5.0 GB from "
        "other regions. 0 assets unsynced."
    )
    assert len(summary) < 1000
    date = shown["until"].value[:10]
    html = read_bytes(join(disk_or_gcs_prefix, f"reports/weekly/{date}.html")).decode()
    assert str(shown["report"].value).endswith(f"/reports/weekly/{date}.html")
    assert isinstance(shown["report"], dg.UrlMetadataValue)
    assert "The step &#x27;toy/&lt;broken&gt;&#x27; failed: it leaks." in html
    assert f'<a href="https://dagster.example.org/runs/{run_id}">{run_id[:8]}</a>' in html
    assert '<a href="https://dagster.example.org/assets/toy/a">toy/a</a>' in html
    assert "http" not in html.replace("https://dagster.example.org/", ""), "it needs nothing else"


def test_only_what_ran_in_its_time_is_counted(instance: dg.DagsterInstance, prefix: Path) -> None:
    there = Deployment(instance, days=1e-4)
    there.materialized("early", reused=False, compute_s=60.0)
    there.fail()
    time.sleep(0.2)
    since = now()
    there.materialized("within", reused=False, compute_s=60.0)
    there.materialized("both", reused=False, compute_s=60.0)
    failed = there.fail()
    until = now()
    there.materialized("both", reused=False, compute_s=60.0)
    there.materialized("late", reused=False, compute_s=60.0)
    there.fail()
    week = read_week(instance, since, until, KEY)
    assert {name: ran.computed for name, ran in week.assets.items()} == {"within": 1, "both": 1, "toy/broken": 0}
    assert (week.runs, [each.run_id for each in week.failed]) == (1, [failed])
    elsewhere = datetime.timezone(datetime.timedelta(hours=-9))
    assert read_week(instance, since.astimezone(elsewhere), until.astimezone(elsewhere), KEY) == week
    shown = there.make(until.isoformat())
    assert "late" not in {row[0] for row in rows(shown, "assets")}
    assert shown["until"].value == until.isoformat()


def test_a_run_that_dagster_tries_again_is_no_failure(instance: dg.DagsterInstance, prefix: Path) -> None:
    there = Deployment(instance)
    instance.add_run_tags(there.fail(), {"dagster/auto_retry_run_id": "of the next try"})
    week = read_week(instance, now() - HOUR, now(), KEY)
    assert (week.runs, list(week.failed), week.assets) == (1, [], {})


def test_many_materializations_of_an_asset_are_read_in_pages(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_sensors.weekly.run_history.AT_ONCE", 3)
    since, there = now(), Deployment(instance)
    for _ in range(4):
        there.materialized("a", reused=False, compute_s=1.0)
        there.materialized("a", reused=True)
    assert read_week(instance, since, now(), KEY).assets == {"a": Ran(computed=4, reused=4, compute_s=4.0)}


def test_what_is_unsynced_is_named(instance: dg.DagsterInstance, prefix: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls.txt"

    def steps(value: int) -> list[Step]:
        return [
            part("whole", None, calls, value=versioned(value)),
            part("parts", static("a", "b", "c"), calls, value=versioned(value)),
        ]

    for node in build_graph(steps(1)):
        tags = {"dagster/code_version": node.version.hash, "dagster/data_version": node.version.hash}
        for key in [None] if node.step.partitions is None else ["a", "b"]:
            instance.report_runless_asset_event(dg.AssetMaterialization(asset_key(node), partition=key, tags=tags))
    shown = Deployment(instance, steps(2)).make()
    named = {name: (version, count) for name, version, count in rows(shown, "unsynced now")}
    versions = {"/".join(asset_key(node).path): node.version.hash for node in build_graph(steps(2))}
    assert named == {"parts/whole": (versions["parts/whole"], ""), "parts/parts": (versions["parts/parts"], "2")}
    assert shown["unsynced"].value == 2


def test_it_is_taken_for_no_step(instance: dg.DagsterInstance, prefix: Path) -> None:
    there = Deployment(instance, [toy("a")])
    there.make()
    graph = there.repository.asset_graph
    assert graph.has(KEY)
    assert [key.to_user_string() for key in steps_of(graph)] == ["toy/a"]
    assert find_unsynced(graph, instance, Store(str(prefix))) == []
    for sensor in (unsynced(), stale_leases()):
        context = dg.build_sensor_context(instance=instance, repository_def=there.repository)
        said = sensor(context)
        reason = said if isinstance(said, dg.SkipReason) else said.skip_reason  # type: ignore[union-attr]
        assert reason is not None
        assert what_is_there(str(reason.skip_message)) in (
            "Every asset that was materialized has the version of its definition.",
            "No output is left half made. 0 under way.",
        )
    assert there.make()["computed"].value == 0, "it does not count itself"


def test_what_cannot_be_read_is_said_and_the_rest_is_told(instance: dg.DagsterInstance, prefix: Path) -> None:
    there = Deployment(instance)
    there.materialized("a", reused=False)
    at = now()
    Lab(str(prefix)).ran("train/a", gpu(), at - 3 * HOUR, 2)
    control.put(f"{prefix}/{FOLDER}/{at:%Y-%m-%d}/1-damaged.json", b"{}")
    shown = there.make()
    assert "Device hours and transfers are unknown: " in shown["unknown"].value
    assert "1-damaged.json" in shown["unknown"].value
    assert shown["computed"].value == 1
    assert {"device_hours", "transferred_gb"}.isdisjoint(shown)


def test_a_long_table_is_cut_on_dagsters_page_alone(
    instance: dg.DagsterInstance, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_sensors.weekly_report.SHOWN_ROWS", 2)
    there = Deployment(instance)
    for name in "abc":
        there.materialized(name, reused=True)
    shown = there.make()
    assert len(rows(shown, "assets (first 2 of 3)")) == 2
    html = (prefix / shown["report"].value.removeprefix("/outputs/")).read_text()
    assert "<td>c<" in html


@pytest.mark.parametrize(
    ("until", "sentence"),
    [
        ("monday", "The report has until='monday', expected a time such as '2026-01-12T07:00'."),
        ("2999-01-01", "The report has until='2999-01-01', expected a time that has passed."),
    ],
)
def test_a_wrong_time_is_said_in_a_sentence(
    until: str, sentence: str, instance: dg.DagsterInstance, prefix: Path
) -> None:
    run = Deployment(instance).run("weekly_report_job", {"ops": {"weekly_report": {"config": {"until": until}}}})
    assert failure(instance, run.run_id) == sentence


def test_without_a_code_location_it_says_what_to_do(instance: dg.DagsterInstance, prefix: Path) -> None:
    report, _ = weekly_report()
    result = dg.materialize([report], instance=instance, raise_on_error=False)
    assert failure(instance, result.run_id) == (
        "The report needs the code location, and this run has none. Materialize it in Dagster's UI, or by its schedule."
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cron": ""}, "The schedule 'weekly_report' has cron='', expected five fields such as '0 5 * * *'."),
        ({"timezone": "X"}, "The schedule 'weekly_report' has timezone='X', expected one such as 'Europe/Zurich'."),
        ({"days": 0}, "The report 'weekly_report' has days=0, expected days above 0."),
    ],
)
def test_what_it_cannot_be_made_of_is_said_in_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="has") as error:
        weekly_report(**options)
    assert one_sentence(error) == sentence


@pytest.mark.long
def test_the_schedule_requests_a_report_that_ends_at_its_time(instance: dg.DagsterInstance, prefix: Path) -> None:
    there = Deployment(instance, timezone="Europe/Zurich")
    assert there.schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    at = datetime.datetime(2026, 1, 5, 6, tzinfo=datetime.UTC)
    context = dg.build_schedule_context(instance, at, repository_def=there.repository)
    [request] = there.schedule.evaluate_tick(context).run_requests or ()
    run = there.run("weekly_report_job", dict(request.run_config))
    assert run.is_success, failure(instance, run.run_id)
    page = Path(prefix, "reports/weekly/2026-01-05.html").read_text()
    assert "<h1>weekly_report: 2025-12-29 07:00 to 2026-01-05 07:00 (CET)</h1>" in page
