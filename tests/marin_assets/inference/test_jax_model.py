"""A model is loaded where the step requests it."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import pytest
from random_llama import write_random_llama

from marin_assets.inference.jax_model import ModelError, bound, load_model, logits_at
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


@pytest.mark.long
def test_a_window_that_the_attentions_blocks_do_not_divide_gives_the_logits_of_a_longer_one(tmp_path: Path) -> None:
    def logits(window: int) -> Any:
        (folder := tmp_path / str(window)).mkdir()
        model, _ = load_model(write_random_llama(folder, list(topics.values())[:50], window))
        tokens = np.arange(1300, dtype=np.int32)[None] % 500 + 5
        padded = np.zeros((1, window), np.int32)
        padded[:, :1300] = tokens
        return np.asarray(bound(logits_at, model)(padded, np.array([[10, 1299]], np.int32)))

    assert logits(1300) == pytest.approx(logits(2048), abs=1e-4)
