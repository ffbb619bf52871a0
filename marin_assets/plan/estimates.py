"""The cost of computing a step, by the history of the same step: the median of its newest complete outputs.

An estimate rests on outputs of the same name, of whatever version. A step without history is estimated by its
floating-point operations (`Step.expected_flops`) on devices whose peak is in the catalogue; else it has no estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from marin_assets.step.graph import Node
from marin_assets.step.step import Step
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.notes.cost import cost_of
from marin_resources.types.record import Record

NEWEST_OUTPUTS = 10
"""The number of a step's outputs that an estimate rests on."""
ASSUMED_MFU = 0.4
"""Model FLOPs utilization (PaLM, arXiv:2204.02311, section 4.1), the share of the devices' peak, of a step without
history. Chowdhery et al. report .21 to .46 of four large trainings; a small model on many chips has less."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Time and device hours of one computation of a step."""

    compute_s: float
    """Median of the time from the call of its function to its end, or of whole attempts in older records."""
    device_hours: float | None
    """Median of the hours of one GPU, or of one chip of a TPU, that it holds; None for a step without devices."""
    outputs: int
    """The number of complete outputs that it rests on; 0: it rests on the step's floating-point operations."""
    dollars: float | None = None
    """Price of the device hours; None without devices, or without a price of them."""


def estimates(nodes: Sequence[Node], complete: CompleteOutputs) -> dict[str, Expected]:
    """Name of a step -> its expected cost; nothing for a step of which no time is recorded."""
    marks = {node.name: complete.by_name.get(node.name, [])[:NEWEST_OUTPUTS] for node in nodes}
    records = complete.records(mark for step_marks in marks.values() for mark in step_marks)
    steps = {node.name: node for node in nodes}
    estimated = {
        name: _of(steps[name], [records[mark] for mark in step_marks if mark in records]) or _by_flops(steps[name].step)
        for name, step_marks in marks.items()
    }
    return {name: expected for name, expected in estimated.items() if expected is not None}


@dataclass(frozen=True, kw_only=True)
class Total:
    """Time and device hours of several computations together."""

    compute_s: float
    device_hours: float
    dollars: float
    """Price of the device hours that have one."""
    unpriced_hours: float
    """The device hours that have none."""
    known: int
    """The number of computations with an estimate, whose sum it is."""
    by_flops: int
    """Those of them that rest on floating-point operations."""
    unknown: int
    """The number of computations without an estimate, which are not in it."""


def total_of(expected: Iterable[Expected | None]) -> Total:
    """The sum, as if all were computed one after another."""
    computations = list(expected)
    estimated = [estimate for estimate in computations if estimate is not None]
    return Total(
        compute_s=sum(estimate.compute_s for estimate in estimated),
        device_hours=sum(estimate.device_hours or 0.0 for estimate in estimated),
        dollars=sum(estimate.dollars or 0.0 for estimate in estimated),
        unpriced_hours=sum(estimate.device_hours or 0.0 for estimate in estimated if estimate.dollars is None),
        known=len(estimated),
        by_flops=sum(estimate.outputs == 0 for estimate in estimated),
        unknown=len(computations) - len(estimated),
    )


def _of(node: Node, records: Sequence[Record]) -> Expected | None:
    times = [seconds for record in records if (seconds := _compute_s(record)) is not None]
    if not times:
        return None
    hours = [device_hours for record in records if (device_hours := _device_hours(node, record)) is not None]
    return Expected(compute_s=median(times), device_hours=median(hours) if hours else None, outputs=len(times))


def _by_flops(step: Step) -> Expected | None:
    """The time on the devices at the assumed share of their peak."""
    resources, peak = step.resources, step.resources.peak_flops
    if step.expected_flops is None or peak is None:
        return None
    compute_s = step.expected_flops / (ASSUMED_MFU * peak)
    return Expected(compute_s=compute_s, device_hours=resources.devices * compute_s / 3600, outputs=0)


def _compute_s(record: Record) -> float | None:
    """The time of the function's call; an output that was adopted took none here."""
    if record.adopted:
        return None
    seconds = record.timing.get("compute_s", record.duration_s)
    return None if seconds is None else float(seconds)


def _device_hours(node: Node, record: Record) -> float | None:
    """The hours in the record; in a record without devices, those of today's devices for the time that it took."""
    recorded = cost_of(record).device_hours
    if recorded is not None:
        return recorded or None
    seconds, devices = _compute_s(record), node.step.resources.devices
    return devices * seconds / 3600 if devices and seconds is not None else None
