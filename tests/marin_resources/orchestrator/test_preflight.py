"""A run that lacks something for one of its steps ends before the first of them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
import toy_steps
from running import definitions_of, reused, run_job, run_steps
from toy_steps import calls, toy

from marin_assets import cpu, gpu
from marin_resources.dagster_fixes.console import run_failure


def refusal(result: dg.ExecuteInProcessResult) -> list[str]:
    """The lines of the run's failure."""
    assert not result.success
    [failure] = [event for event in result.all_events if event.is_job_failure]
    return run_failure(failure).splitlines()


def warnings(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    return [entry.user_message for entry in instance.all_logs(run_id) if entry.level == 30]


def test_nothing_is_computed_if_one_of_the_steps_lacks_something(
    prefix: Path, instance: dg.DagsterInstance, shared_ray: None
) -> None:
    first = toy("first")
    after = toy("after", reads=first, env=("TOY_TOKEN",))
    result = run_steps([after, toy("other", env=("TOY_TOKEN",)), toy("gpu", resources=gpu(count=8))], instance)
    device, variable = sorted(refusal(result)[:2])
    assert variable.endswith(" require the variable 'TOY_TOKEN', which is not set. Export it.")
    assert variable.startswith(("Steps 'toy/after' and 'toy/other' ", "Steps 'toy/other' and 'toy/after' "))
    assert device.startswith("Step 'toy/gpu' requests 1 CPU, 8 GPU, which no node here has: GPU 8 requested, 0 at most")
    assert refusal(result)[2:] == ["Nothing was computed."]
    assert calls(prefix) == []


def test_what_is_complete_requires_nothing(
    prefix: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, shared_ray: None
) -> None:
    steps = [toy("a", env=("TOY_TOKEN",)), toy("b")]
    monkeypatch.setenv("TOY_TOKEN", "secret")
    assert run_steps(steps, instance).success
    monkeypatch.delenv("TOY_TOKEN")
    result = run_steps(steps, instance)
    assert result.success
    assert list(reused(result).values()) == [True, True]


def test_only_the_steps_of_the_run_are_looked_at(prefix: Path, instance: dg.DagsterInstance, shared_ray: None) -> None:
    definitions = definitions_of([toy("a"), toy("b", env=("TOY_TOKEN",))])
    [key] = [key for key in definitions.resolve_all_asset_keys() if "a" in key.path]
    job = dg.define_asset_job("one", dg.AssetSelection.assets(key))
    some = dg.Definitions(
        assets=definitions.assets, resources=definitions.resources, executor=definitions.executor, jobs=[job]
    )
    assert run_job(some, "one", instance).success
    assert len(calls(prefix)) == 1


def test_what_a_step_requires_is_shown_before_it_runs() -> None:
    step = toy("a", extras=("train",), resources=cpu(4))
    [spec] = definitions_of([step]).resolve_all_asset_specs()
    assert spec.metadata["marin/requires"].value["extras"] == ["train"]
    [plain] = definitions_of([toy("b")]).resolve_all_asset_specs()
    assert "marin/requires" not in plain.metadata


def test_a_step_that_leaves_nothing_says_so(prefix: Path, instance: dg.DagsterInstance, shared_ray: None) -> None:
    result = run_steps([toy("idle", toy_steps.leave_nothing)], instance)
    assert result.success
    [warning] = warnings(instance, result.run_id)
    assert warning.startswith("toy/idle: complete and empty: its function wrote no file below ")
    assert run_steps([toy("useful")], instance).success
