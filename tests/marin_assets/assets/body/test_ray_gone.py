"""A run on whose machine no Ray runs is marked, so that its sensor requests it again."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
import toy_steps
from toy_steps import toy

from marin_assets.assets.runs.run import run_graph
from marin_assets.step.graph import build_graph
from marin_resources.orchestrator.lost_runs import is_marked_lost
from marin_resources.ray_tpu.local.backend import LocalBackend
from marin_resources.ray_tpu.ray_options import RayGoneError, UnmeetableError

pytestmark = pytest.mark.usefixtures("shared_ray")


@pytest.mark.parametrize(("kind", "lost"), [(RayGoneError, True), (UnmeetableError, False)])
def test_a_run_is_marked_as_lost_if_its_ray_is_gone_and_not_if_its_step_is_at_fault(
    prefix: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], *, lost: bool
) -> None:
    def submit(backend: LocalBackend, task: object) -> None:
        raise kind("Ray did not start on this machine.")

    monkeypatch.setattr(LocalBackend, "_submit", submit)
    graph = build_graph([toy("a", toy_steps.make)])
    result = run_graph("mine", graph, list(graph))
    assert len(result.failures) == 1
    with dg.DagsterInstance.get() as instance:
        run = instance.get_run_by_id(result.run_id)
        assert run is not None
        assert is_marked_lost(run) is lost
