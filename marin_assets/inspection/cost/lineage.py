"""The costs of an output and of all that it was made from, each shared ancestor once; and the same made again today."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median

from marin_assets.inspection.cost.sums import OutputCost
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.lineage import lineage_of
from marin_resources.storage.output.notes.cost import RecordCost, cost_of
from marin_resources.storage.transfer.budget import spent
from marin_resources.storage.usage.cost_estimate import CostEstimate, PriceList, bill_of, price_list
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

NEWEST_OUTPUTS = 10
"""Outputs of a step that its expected cost rests on."""
MEDIANS = ("wall_s", "cpu_s", "reserved_cpu_s", "device_s", "bytes_in", "bytes_out")
THREADS = 16


def costs_of(path: str, record: Record, complete: CompleteOutputs) -> list[OutputCost]:
    """The costs of the output with this record and of each output that it was made from; its own first.

    Seconds and bytes are those that were recorded; prices are today's. Raises SettingError and UnavailableError.
    """
    lineage = lineage_of(path, record, complete)
    listed = price_list()
    with ThreadPoolExecutor(THREADS) as pool:
        return list(
            pool.map(lambda ancestor: _cost(ancestor[0], ancestor[1], complete.prefix, listed), lineage.items())
        )


def costs_again(made: Sequence[OutputCost], complete: CompleteOutputs) -> list[OutputCost]:
    """The cost to make each of these outputs again today: medians of the newest complete outputs of the same step,
    whatever their versions, and at least of its own recorded cost. Attempts that failed are in them."""
    listed = price_list()
    marks = {output.name: complete.by_name.get(output.name, [])[:NEWEST_OUTPUTS] for output in made}
    records = complete.records(mark for newest in marks.values() for mark in newest)
    history: dict[str, list[RecordCost]] = {
        name: [cost_of(records[mark]) for mark in newest if mark in records] for name, newest in marks.items()
    }
    for output in made:
        if not marks[output.name]:  # partitions and overrides have no marker
            history[output.name].append(output.cost)
    return [_again(output, history[output.name] or [output.cost], listed) for output in made]


def _again(output: OutputCost, history: Sequence[RecordCost], listed: PriceList) -> OutputCost:
    amounts = {name: _median(getattr(cost, name) for cost in history) for name in MEDIANS}
    expected = replace(history[0], **amounts, unknown_attempts=0)  # type: ignore[arg-type]
    return replace(output, cost=expected, bill=bill_of(expected, listed))


def _median(amounts: Iterable[float | None]) -> float | None:
    recorded = [amount for amount in amounts if amount is not None]
    return median(recorded) if recorded else None


def _cost(path: str, record: Record | None, prefix: str, listed: PriceList) -> OutputCost:
    if record is None:
        label = path.removeprefix(f"{prefix}/")
        return OutputCost(
            label=label,
            path=path,
            recorded=False,
            cost=RecordCost(),
            bill=CostEstimate(dollars=None, unknown="no record"),
        )
    cost = cost_of(record)
    moved_bytes, moved_dollars = _transfers(path, record)
    return OutputCost(
        label=_label(path, record),
        path=path,
        recorded=True,
        cost=cost,
        bill=bill_of(cost, listed),
        transferred_bytes=moved_bytes,
        transferred_dollars=moved_dollars,
    )


def _label(path: str, record: Record) -> str:
    name = record.name or path
    return name if record.partition is None else f"{name}[{record.partition}]"


def _transfers(path: str, record: Record) -> tuple[int | None, float | None]:
    """Bytes and dollars of transfers from other regions; of an output whose config names none, no file is read."""
    if not record.cluster and "mirror://" not in json.dumps(record.config):
        return 0, 0.0
    try:
        moved = spent(path)
    except ControlFileError:
        return None, None
    return moved["bytes"], moved["dollars"]
