"""Runs of selected steps, as Dagster's history has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from toy_steps import toy

from marin_assets.assets.assemble import assemble
from marin_assets.assets.runs.outputs_of_run import outputs_of_run, run_with
from marin_assets.assets.runs.run import RunResult, run_graph
from marin_assets.catalog.experiments_folder import Experiments
from marin_assets.step.graph import build_graph
from marin_resources.dagster_fixes.run_launcher import is_in_terminal
from marin_resources.storage.output.store import Store
from marin_resources.types.location_job import ALL_ASSETS, LocationJob


@pytest.fixture
def run(prefix: Path, dagster_home: Path) -> Callable[..., tuple[RunResult, dg.DagsterRun]]:
    """Run the steps a and b, which are complete; return the result and Dagster's run."""
    a = toy("a")
    graph = build_graph([a, toy("b", reads=a)])
    store = Store(str(prefix))
    for node in graph:
        store.publish(store.claim(node.output, attempt=1, resumable=False, run_id=None), {}, {})

    def run_nodes(*names: str, **options: object) -> tuple[RunResult, dg.DagsterRun]:
        result = run_graph("mine", graph, [node for node in graph if node.name in names], **options)
        with dg.DagsterInstance.get() as instance:
            found = instance.get_run_by_id(result.run_id)
        assert found is not None
        return result, found

    return run_nodes


def test_a_run_of_all_of_a_job_selects_nothing(run: Callable[..., tuple[RunResult, dg.DagsterRun]]) -> None:
    result, found = run("toy/a", "toy/b", of_job=LocationJob(name="experiment", whole=True))
    assert (result.reused, result.failures) == (2, ())
    assert (found.job_name, found.asset_selection) == ("experiment", None)
    assert found.remote_job_origin.location_name == "marin"
    with dg.DagsterInstance.get() as instance:
        assert run_with(instance, found.run_id[:8]) == found.run_id
        outputs = outputs_of_run(instance, found.run_id)
        assert outputs_of_run(instance, "another") is None
    assert outputs is not None
    assert [path.rpartition("-")[0].rpartition("/")[2] for path in sorted(outputs.paths)] == ["a", "b"]


@pytest.mark.parametrize("job", ["experiment", ALL_ASSETS])
def test_a_run_of_a_part_selects_its_assets(run: Callable[..., tuple[RunResult, dg.DagsterRun]], job: str) -> None:
    result, found = run("toy/b", of_job=LocationJob(name=job, whole=False))
    assert (result.reused, result.failures) == (1, ())
    assert (found.job_name, found.asset_selection) == (job, frozenset({dg.AssetKey(["toy", "b"])}))
    assert found.remote_job_origin.repository_origin.get_label() == "__repository__@marin"


def test_a_run_of_no_job_of_the_code_location_has_no_origin(
    run: Callable[..., tuple[RunResult, dg.DagsterRun]],
) -> None:
    result, found = run("toy/b")
    assert (result.reused, found.job_name, found.remote_job_origin) == (1, "mine", None)


def test_a_re_execution_is_not_in_this_terminal(run: Callable[..., tuple[RunResult, dg.DagsterRun]]) -> None:
    """Dagster copies config and tags."""
    _, found = run("toy/b")
    assert found.run_config == {"loggers": {"console": {"config": {}}}}
    assert is_in_terminal(found)
    assert not is_in_terminal(dg.DagsterRun(job_name="mine", run_id="another", tags=found.tags))


def test_other_options_are_in_the_config(run: Callable[..., tuple[RunResult, dg.DagsterRun]]) -> None:
    _, found = run("toy/b", wait_for_others=False, max_concurrent=2)
    assert found.run_config["resources"] == {"store": {"config": {"wait_for_others": False}}}
    assert found.run_config["execution"] == {"config": {"max_concurrent": 2}}


def test_the_job_is_the_one_that_the_code_location_has(run: Callable[..., tuple[RunResult, dg.DagsterRun]]) -> None:
    """Else the UI warns before each re-execution."""
    _, found = run("toy/a", "toy/b", of_job=LocationJob(name="experiment", whole=True))
    a = toy("a")
    there = assemble(Experiments({"experiment": (a, toy("b", reads=a)), "other": (toy("c"),)}, {}))
    assert found.job_snapshot_id == there.resolve_job_def("experiment").get_job_snapshot_id()
