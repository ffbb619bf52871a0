"""A model is loaded where the step requests it."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_assets.inference.jax_model import ModelError, load_model
from marin_resources.step_api.hosts import ACCELERATOR


def test_an_evaluation_that_requests_a_gpu_does_not_run_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ACCELERATOR, "gpu")
    with pytest.raises(ModelError, match="The step requests a GPU, and jax finds only 'cpu' on this host"):
        load_model(str(tmp_path))
    monkeypatch.delenv(ACCELERATOR)
    with pytest.raises(ModelError, match=r"has no 'config.json'"):
        load_model(str(tmp_path))
