"""What jax must find on a host."""

from __future__ import annotations

import pytest

from marin_resources.step_api.hosts import ACCELERATOR, missing_accelerator


def test_a_step_without_devices_takes_whatever_jax_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ACCELERATOR, raising=False)
    assert missing_accelerator("cpu", "cpu") is None
    assert missing_accelerator("gpu", "NVIDIA H100 80GB HBM3") is None


def test_a_step_that_requests_a_gpu_has_a_sentence_where_jax_finds_another_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ACCELERATOR, "gpu")
    assert missing_accelerator("gpu", "NVIDIA H100 80GB HBM3") is None
    assert (missing_accelerator("cpu", "cpu") or "").startswith(
        "The step requests a GPU, and jax finds only 'cpu' on this host. Check that the environment of the nodes has "
        "jax for GPU"
    )
