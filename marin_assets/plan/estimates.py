"""What computing a step takes, by the history of the same step: the median of its newest complete outputs.

An estimate rests on outputs of the same name, of whatever version. There is none for a step without history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from marin_assets.step.graph import Node
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.notes.cost import cost_of
from marin_resources.types.record import Record

NEWEST_OUTPUTS = 10
"""Of a step, that an estimate rests on."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What one computation of a step takes."""

    compute_s: float
    """Median of the time from the call of its function to its end, or of whole attempts in older records."""
    device_hours: float | None
    """Median of the hours of one GPU, or of one chip of a TPU, that it holds; None for a step without devices."""
    outputs: int
    """How many complete outputs it rests on."""


def estimates(nodes: Sequence[Node], complete: CompleteOutputs) -> dict[str, Expected]:
    """Name of a step -> what it takes; nothing for a step of which no time is recorded."""
    marks = {node.name: complete.by_name.get(node.name, [])[:NEWEST_OUTPUTS] for node in nodes}
    records = complete.records(mark for some in marks.values() for mark in some)
    steps = {node.name: node for node in nodes}
    found = {
        name: _of(steps[name], [records[mark] for mark in some if mark in records]) for name, some in marks.items()
    }
    return {name: expected for name, expected in found.items() if expected is not None}


@dataclass(frozen=True, kw_only=True)
class Total:
    """What several computations take together."""

    compute_s: float
    device_hours: float
    known: int
    """Of so many computations."""
    unknown: int
    """So many have no history, and are not in it."""


def total_of(expected: Iterable[Expected | None]) -> Total:
    """The sum, as if all were computed one after another."""
    each = list(expected)
    known = [one for one in each if one is not None]
    return Total(
        compute_s=sum(one.compute_s for one in known),
        device_hours=sum(one.device_hours or 0.0 for one in known),
        known=len(known),
        unknown=len(each) - len(known),
    )


def _of(node: Node, records: Sequence[Record]) -> Expected | None:
    times = [seconds for record in records if (seconds := _compute_s(record)) is not None]
    if not times:
        return None
    hours = [each for record in records if (each := _device_hours(node, record)) is not None]
    return Expected(compute_s=median(times), device_hours=median(hours) if hours else None, outputs=len(times))


def _compute_s(record: Record) -> float | None:
    """The time of the function's call; an output that was adopted took none here."""
    if record.adopted:
        return None
    found = record.timing.get("compute_s", record.duration_s)
    return None if found is None else float(found)


def _device_hours(node: Node, record: Record) -> float | None:
    """As its record has them; in one that says nothing of devices, those of today for the time that it took."""
    recorded = cost_of(record).device_hours
    if recorded is not None:
        return recorded or None
    seconds, devices = _compute_s(record), node.step.resources.devices
    return devices * seconds / 3600 if devices and seconds is not None else None
