"""What Levanter does on devices that this machine does not have."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.train.metrics.metrics import PEAK, MetricsFile, Progress
from marin_resources.hardware.catalogue import find_gpu_type


@pytest.fixture
def pretended_gpu(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """jax reports a GPU, which decides the kernel that Levanter's loss begins with."""
    import jax
    from levanter.kernels.pallas.fused_cross_entropy_loss import api

    api._default_implementations.cache_clear()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    caplog.set_level(logging.INFO, logger=api.__name__)
    yield
    api._default_implementations.cache_clear()


def trace_loss(context: AbstractContextManager[Any]) -> None:
    import jax
    import jax.numpy as jnp
    from levanter.kernels.pallas.fused_cross_entropy_loss.api import fused_cross_entropy_loss_and_logsumexp_penalty

    def loss(*arrays: Any) -> Any:  # a new function each time: jax keeps what it has traced
        return fused_cross_entropy_loss_and_logsumexp_penalty(*arrays)

    hidden, head = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((16, 32), (32, 64)))
    with context:
        jax.eval_shape(loss, hidden, jax.ShapeDtypeStruct((16,), jnp.int32), head)


def test_the_loss_on_a_gpu_is_xlas_and_tries_no_blocks_by_the_clock(
    pretended_gpu: None, caplog: pytest.LogCaptureFixture
) -> None:
    from marin_assets.stages.train.levanter_run.devices.loss import loss_by_xla

    trace_loss(loss_by_xla())
    assert "autotune" not in caplog.text


def test_levanter_itself_tries_blocks_by_the_clock_on_a_gpu(
    pretended_gpu: None, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.warns(RuntimeWarning, match="falling back to XLA"):
        trace_loss(nullcontext())
    assert "Fused CE autotune miss for pallas_gpu" in caplog.text, "the repair is no longer needed"


@pytest.mark.parametrize(
    ("device", "kind"),
    [
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA A100-SXM4-40GB", "A100-40G"),
        ("NVIDIA A100-SXM4-80GB", "A100-80G"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA B200", "B200"),
    ],
)
def test_a_training_reaches_a_share_of_the_peak_that_the_catalogue_has(device: str, kind: str) -> None:
    from fray.device_flops import device_flops_for_jax_device

    from marin_assets.stages.train.levanter_run.devices.peaks import correct_peaks

    correct_peaks()
    gpu, peak = find_gpu_type(kind), device_flops_for_jax_device(device)
    assert gpu is not None
    assert gpu.bf16_tflops is not None
    assert peak == pytest.approx(gpu.bf16_tflops * 1e12, rel=0.02)


def test_each_row_with_a_loss_has_the_peak_of_the_devices_of_its_attempt(tmp_path: Path) -> None:
    from marin_assets.stages.train.levanter_run.tracker import MetricsTracker

    metrics = MetricsFile(str(tmp_path / "metrics.jsonl"))
    tracker = MetricsTracker(metrics, Progress(9, 100), finished=False)
    tracker.log({"train/loss": 4.0, "throughput/duration": 0.5}, step=2)
    tracker.log_summary({"throughput/theoretical_flops_per_device": 275e12, "throughput/theoretical_flops": 4 * 275e12})
    tracker.log({"train/loss": 4.0, "throughput/duration": 0.5}, step=3)
    tracker.log({"eval/loss": 4.0}, step=3)
    assert [row.get(PEAK) for row in metrics.rows] == [None, 1.1e15]
    metrics.close()


def test_the_devices_of_this_machine_have_no_peak() -> None:
    import jax

    from marin_assets.stages.train.levanter_run.devices.peaks import devices_of_jax

    assert devices_of_jax() == {"kind": "cpu", "count": jax.device_count(), "peak_flops": None}
