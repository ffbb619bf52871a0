"""An error whose text is a sentence fails a step with it; any other error is a bug and keeps its traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy_steps
from toy_steps import toy

from marin_assets.assets.runs.run import run_graph
from marin_assets.step.graph import build_graph
from marin_resources.ray_tpu.local.backend import LocalBackend
from marin_resources.storage.transfer.budget import TransferBudgetError
from marin_resources.types.errors import MarinError

pytestmark = pytest.mark.usefixtures("shared_ray")

SENTENCE = "The roof is open. Close it."


@pytest.mark.parametrize(
    ("kind", "shown"), [(MarinError, True), (TransferBudgetError, True), (RuntimeError, False), (ValueError, False)]
)
def test_a_step_fails_with_the_sentence_of_any_error_that_is_one(
    prefix: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], *, shown: bool
) -> None:
    def submit(backend: LocalBackend, task: object) -> None:
        raise kind(SENTENCE)

    monkeypatch.setattr(LocalBackend, "_submit", submit)
    graph = build_graph([toy("a", toy_steps.make)])
    (failure,) = run_graph("mine", graph, list(graph)).failures
    assert (failure == f"Step 'toy/a': {SENTENCE}") is shown
