"""The job `plan`: it shows what would run, and starts nothing."""

from __future__ import annotations

import base64
from pathlib import Path
from xml.etree import ElementTree

import dagster as dg
import pytest

from marin_assets.assets.assemble import assemble
from marin_assets.assets.plan_job import FOLDER, plan_jobs
from marin_assets.catalog.experiments_folder import load_experiments


def run(instance: dg.DagsterInstance, **config: object) -> dg.ExecuteInProcessResult:
    job = assemble(load_experiments()).resolve_job_def("plan")
    run_config = {"ops": {"show_plan": {"config": config}}} if config else {}
    return job.execute_in_process(run_config, instance=instance, raise_on_error=False)


def shown(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    [output] = (event for event in result.all_events if event.event_type is dg.DagsterEventType.STEP_OUTPUT)
    return {name: value.value for name, value in output.step_output_data.metadata.items()}


def test_the_plan_is_a_table_a_picture_and_a_page_and_nothing_is_started(
    experiment: str, prefix: Path, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", str(prefix))
    result = run(instance, selection=["+model"], experiment=experiment)
    found = shown(result)
    assert found["plan"] == "3 to run"
    assert "| **run** | 3 | `toy/data`, `toy/tokens`, `toy/model` | no output of this step yet |" in str(
        found["groups"]
    )
    _, _, data = str(found["picture"]).removesuffix(")").partition("base64,")
    picture = ElementTree.fromstring(base64.b64decode(data))
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    page = prefix / FOLDER / f"{result.run_id}.html"
    assert found["page"] == f"/outputs/{page.relative_to(prefix)}"
    assert f"<h1>Plan: {experiment}</h1>" in page.read_text()
    assert [each.name for each in prefix.iterdir()] == [".marin"]
    assert len(instance.get_runs()) == 1


def test_without_a_config_it_is_of_all_steps_and_a_wrong_selection_is_a_sentence(
    experiment: str, prefix: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", str(prefix))
    assert shown(run(instance))["plan"] == "4 to run"
    failed = run(instance, selection=["nothing_of_this_name"])
    [failure] = (event for event in failed.all_events if event.is_step_failure)
    assert "nothing_of_this_name" in str(failure.step_failure_data.user_failure_data.description)


def test_an_experiment_of_this_name_keeps_it_and_a_sentence_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert plan_jobs({"plan", "other"}) == []
    assert "Rename the experiment's file" in caplog.text
    assert [job.name for job in plan_jobs({"other"})] == ["plan"]
