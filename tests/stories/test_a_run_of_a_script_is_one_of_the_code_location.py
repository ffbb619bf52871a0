"""Runs of scripts in the UI: they belong to their experiment's job, and can be re-executed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_dev import DagsterDev, dagster_dev
from running import ROOT, wait_until

EXPERIMENT = ("-m", "marin_assets.experiments.two_steps")
ELSEWHERE = "from marin_assets import executor_main\nfrom marin_assets.experiments.two_steps import steps\n"
LOCATION = "__repository__@marin"
RUNS = """query($job: String!) { pipelineOrError(params: {
  pipelineName: $job, repositoryName: "__repository__", repositoryLocationName: "marin" }) {
    ... on Pipeline { runs { runId } } } }"""
AGAIN = """mutation($run: String!) {
  launchRunReexecution(reexecutionParams: { parentRunId: $run, strategy: ALL_STEPS }) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""


def run(*arguments: str, folder: Path, **variables: str) -> None:
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def newest(instance: dg.DagsterInstance) -> dg.DagsterRun:
    [found] = instance.get_runs(limit=1)
    return found


def keys(*names: str) -> frozenset[dg.AssetKey]:
    return frozenset(dg.AssetKey(["two_steps", name]) for name in names)


def execute_again(dev: DagsterDev, run_id: str) -> str:
    answer: Any = dev.ask(AGAIN, run=run_id)["launchRunReexecution"]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    again = str(answer["run"]["runId"])
    wait_until(lambda: dev.status(again) in ("SUCCESS", "FAILURE"), "the re-execution", timeout_s=300)
    return again


@pytest.mark.long
def test_the_job_lists_it_and_the_button_executes_the_same_assets_again(
    prefix: Path, dagster_home: Path, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    run(*EXPERIMENT, folder=ROOT, MARIN_PREFIX=str(tmp_path / "another"))  # what is complete is part of no run
    whole = newest(instance)
    run(*EXPERIMENT, "--select", 'key:"two_steps/data"', folder=ROOT)
    part = newest(instance)
    run("-m", "marin_assets.cli", "materialize", "two_steps/stats", folder=ROOT)
    selected = newest(instance)
    for one, job, selection in (
        (whole, "two_steps", None),
        (part, "two_steps", keys("data")),
        (selected, "__ASSET_JOB", keys("stats")),
    ):
        assert (one.job_name, one.asset_selection) == (job, selection)
        assert instance.get_runs(dg.RunsFilter(run_ids=[one.run_id], tags={".dagster/repository": LOCATION})) == [one]

    env = {"DAGSTER_HOME": str(dagster_home), "MARIN_PREFIX": str(prefix)}
    with dagster_dev(ROOT / "workspace.yaml", tmp_path / "dev.log", env) as dev:
        listed = dev.ask(RUNS, job="two_steps")["pipelineOrError"]["runs"]
        assert {row["runId"] for row in listed} == {whole.run_id, part.run_id}
        for one in (whole, part, selected):
            again = instance.get_run_by_id(execute_again(dev, one.run_id))
            assert again is not None
            assert again.status is dg.DagsterRunStatus.SUCCESS
            assert (again.parent_run_id, again.asset_selection) == (one.run_id, one.asset_selection)
            assert "ray_tpu" not in str(again.run_config)


@pytest.mark.long
@pytest.mark.parametrize(
    "script",
    [f"{ELSEWHERE}executor_main(steps())", f"{ELSEWHERE}executor_main(steps()[:1])"],
    ids=["all steps", "one step"],
)
def test_a_script_that_is_no_experiment_of_the_code_location_is_none(
    prefix: Path, instance: dg.DagsterInstance, tmp_path: Path, script: str
) -> None:
    (tmp_path / "mine.py").write_text(script)
    run("mine.py", folder=tmp_path)
    one = newest(instance)
    assert (one.job_name, one.remote_job_origin, one.asset_selection) == ("mine", None, None)
