"""The hardware of a training, and the operations that it could have done in the time of its steps.

In:  the record of a training, and its rows of metrics.   Out: Hardware. Read: nothing.

The operations of the hardware are, summed over the steps, the duration of a step x the peak of all chips that it ran
on. A chip is what Google counts in a topology: a v4-8 has 4, of 2 cores each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.report.records import StepRecord
from marin_resources.hardware.catalogue import find_gpu_type, find_slice_type, slice_types
from marin_resources.hardware.resources import pool_name

PEAK, DURATION = "throughput/theoretical_flops", "throughput/duration"
"""Metrics of a step: operations a second at the peak of all devices, and seconds."""
DEVICES = "devices"
"""In the result of a training: kind, count and peak_flops of what jax had."""
CORES_OF_A_CHIP = {"TPU v2": 2, "TPU v3": 2}
"""Devices of jax on one chip, where they are not one."""
TERA = 1e12


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """None: it is not known, and `missing` is the sentence for it."""

    kind: str | None
    """Google's or Ray's name of the type, else jax's of a device."""
    devices: int | None = None
    chips: int | None = None
    chip_flops: float | None = None
    """Peak of one chip, in operations a second."""
    flops: float | None = None
    """Operations at the peak in the time of all timed steps."""
    missing: str = ""


def hardware_of(training: StepRecord, rows: Sequence[Mapping[str, Any]]) -> Hardware:
    """The hardware of the steps with a duration: by what each step has recorded, or else by the slices or GPUs that an
    earlier release of this software has recorded."""
    timed = [row for row in rows if DURATION in row]
    kind, devices = _pool_type(training), training.result.get(DEVICES) or {}
    if any(PEAK in row for row in timed):
        return _by_step(kind, devices, timed)
    hardware = _by_pool(training, kind, math.fsum(row[DURATION] for row in timed))
    if hardware.flops is None and devices and devices.get("peak_flops") is None:
        return Hardware(
            kind=kind or devices.get("kind"),
            devices=devices.get("count"),
            missing=f"No peak of the device {devices.get('kind')!r} is on record, so the operations of the hardware "
            "are not known.",
        )
    return hardware


def _by_step(kind: str | None, devices: Mapping[str, Any], timed: Sequence[Mapping[str, Any]]) -> Hardware:
    name, without = kind or devices.get("kind"), sum(PEAK not in row for row in timed)
    if without:
        return Hardware(
            kind=name,
            missing=f"{without:,} of {len(timed):,} steps ran on devices without a peak on record, so the operations "
            "of the hardware are not known.",
        )
    flops = math.fsum(row[DURATION] * row[PEAK] for row in timed)
    peaks = {row[PEAK] for row in timed}
    if len(peaks) > 1 or not devices.get("peak_flops"):
        return Hardware(
            kind=name,
            flops=flops,
            missing="The steps ran on several numbers or kinds of chips: the operations of the hardware are their sum.",
        )
    cores = CORES_OF_A_CHIP.get(str(devices.get("kind")), 1)
    count = round(peaks.pop() / devices["peak_flops"])
    return Hardware(
        kind=name,
        devices=count,
        chips=count // cores,
        chip_flops=devices["peak_flops"] * cores,
        flops=flops,
    )


def _by_pool(training: StepRecord, kind: str | None, time_s: float) -> Hardware:
    """The hardware where steps have no peak: slices or GPUs that were reserved for the whole time."""
    slice_type = find_slice_type(kind) if kind else None
    gpu = find_gpu_type(kind) if kind and not slice_type else None
    tflops = slice_type.bf16_tflops if slice_type else gpu.bf16_tflops if gpu else None
    if tflops is None:
        return Hardware(
            kind=kind,
            missing="The record of the training names no accelerator with a peak, so the operations of the hardware "
            "are not known.",
        )
    counts = {entry["devices"] for entry in training.tries if entry.get("devices")} or _reserved(training)
    if len(counts) != 1:
        return Hardware(
            kind=kind,
            missing="The training ran on several numbers of chips, and its steps do not record which, so the "
            "operations of the hardware are not known.",
        )
    chips = counts.pop()
    return Hardware(
        kind=kind, devices=chips, chips=chips, chip_flops=tflops * TERA, flops=time_s * chips * tflops * TERA
    )


def _reserved(training: StepRecord) -> set[int]:
    spent = training.record.spent
    return {round(spent.device_s / spent.wall_s)} if spent.device_s and spent.wall_s else set()


def _pool_type(training: StepRecord) -> str | None:
    """The type of the pool that the training took: "v5p-32" of "tpu_v5p_32", "H100" of "gpu_H100"."""
    pool = training.record.spent.pool or ""
    for slice_type in slice_types():
        if pool == pool_name("tpu", slice_type.kind):
            return slice_type.kind
    names = (pool.removeprefix("gpu_"), pool.removeprefix("gpu_").replace("_", "-"))
    return next((name for name in names if pool.startswith("gpu_") and find_gpu_type(name)), None)
