"""What a run prints: short lines for a person, objects for a service's log."""

import json

import dagster as dg
import pytest
from running import run_job

from marin_resources.configuration.settings import SettingError
from marin_resources.dagster_fixes.captured_output import threads_for_tails
from marin_resources.dagster_fixes.console import FORMAT_VARIABLE, short_console
from marin_resources.orchestrator.executor import marin_executor


@dg.asset
def broken(context: dg.AssetExecutionContext) -> None:
    context.log.info("two\nlines")
    context.log.debug("not shown")
    raise ValueError("it is broken")


def run(instance: dg.DagsterInstance) -> str:
    definitions = dg.Definitions(
        assets=[broken],
        jobs=[dg.define_asset_job("make")],
        loggers={"console": short_console},
        executor=dg.in_process_executor,
    )
    with threads_for_tails():  # as the project's own executor has it
        return run_job(definitions, "make", instance, {"loggers": {"console": {}}}).run_id


def test_a_person_reads_short_lines(instance: dg.DagsterInstance, capfd: pytest.CaptureFixture[str]) -> None:
    run(instance)
    lines = [line.partition(" ")[2] for line in capfd.readouterr().err.splitlines()]
    assert "two" in lines
    assert [line for line in lines if "it is broken" in line]


def test_a_person_reads_short_lines_of_a_run_without_loggers_in_its_config_too(
    instance: dg.DagsterInstance, capfd: pytest.CaptureFixture[str]
) -> None:
    """As one of the UI is. Dagster gives it its own console, with a line for each event."""
    definitions = dg.Definitions(assets=[broken], jobs=[dg.define_asset_job("make")], executor=marin_executor)
    run_job(definitions, "make", instance)
    printed = capfd.readouterr().err
    assert "it is broken" in printed
    assert "not shown" not in printed
    assert "STEP_START" not in printed


def test_a_service_prints_objects_with_run_and_step(
    instance: dg.DagsterInstance, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FORMAT_VARIABLE, "json")
    run_id = run(instance)
    told = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert {line["run_id"] for line in told} == {run_id}
    assert {line["job"] for line in told} == {"make"}
    [ours] = [line for line in told if line["event"] == "two\nlines"]
    assert (ours["step"], ours["level"], ours["logger"]) == ("broken", "info", "marin")
    assert [line["step"] for line in told if line["level"] == "error" and "it is broken" in line["event"]]


def test_another_format_is_one_sentence(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORMAT_VARIABLE, "yaml")
    with pytest.raises(SettingError, match="MARIN_LOG_FORMAT is 'yaml', expected one of 'text', 'json'"):
        short_console.logger_fn(None)
