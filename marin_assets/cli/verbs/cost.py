"""Print what an output has cost with all that it was made from, each shared ancestor once.

The sums are over the records: attempts that failed are in them. Prices are today's: MARIN_DEVICE_PRICES, and
`chip_dollars` and `cpu_dollars` of the clusters' catalogue. What is not recorded, or has no price, is counted and is in
no sum. It computes nothing; `marin plan` reports what a run would cost.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from marin_assets.cli.materialization_options import add_materialization, named
from marin_assets.run.options import prefix_of
from marin_assets.run.output import print_line
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.index.lineage import lineage_of
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.notes.cost import RecordCost, cost_of
from marin_resources.storage.usage.cost_estimate import CostEstimate, bill_of, price_list
from marin_resources.types.durations import readable_duration
from marin_resources.types.record import Record

AMOUNTS = {
    "wall_s": "time",
    "cpu_s": "CPU time",
    "device_s": "device time",
    "bytes_in": "read",
    "bytes_out": "written",
    "dollars": "price",
}
"""Amounts that are summed -> their names."""
MOST_OUTPUTS = 10


@dataclass(frozen=True, kw_only=True)
class OutputCost:
    """One output of a lineage."""

    step: str
    """Name, with the key of a partition; the path below the prefix of one without a record."""
    path: str
    cost: RecordCost
    bill: CostEstimate

    def amount(self, name: str) -> float | None:
        return self.bill.dollars if name == "dollars" else getattr(self.cost, name)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_materialization(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, with each output")


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    step = named(options, store)
    this = step.chosen(options.at)
    costs = costs_of(this.path, this.record, CompleteOutputs(store.prefix))
    if options.json:
        about = {"step": step.label, "version": this.version, "path": this.path}
        print_line(json.dumps({**about, **_to_json(costs)}, indent=2))
        return 0
    print_line(f"{step.label}, version {this.version}: {_counted(len(costs))} with all that it was made from")
    for line in lines_of(costs):
        print_line(line)
    return 0


def costs_of(path: str, record: Record, complete: CompleteOutputs) -> list[OutputCost]:
    """The costs of the output with this record and of each output that it was made from; its own first.

    Seconds and bytes are those that were recorded; prices are today's. Raises SettingError and UnavailableError.
    """
    prices = price_list()
    costs = []
    for place, ancestor in lineage_of(path, record, complete).items():
        name = (ancestor.name if ancestor else None) or place.removeprefix(f"{complete.prefix}/")
        key = ancestor.partition if ancestor else None
        cost = cost_of(ancestor) if ancestor else RecordCost()
        bill = bill_of(cost, prices) if ancestor else CostEstimate(dollars=None, unknown="no record")
        costs.append(OutputCost(step=name if key is None else f"{name}[{key}]", path=place, cost=cost, bill=bill))
    return costs


def lines_of(costs: Sequence[OutputCost]) -> Iterator[str]:
    """The sums, what they lack, and the outputs that cost most."""
    for name, noun in AMOUNTS.items():
        amounts = [amount for cost in costs if (amount := cost.amount(name)) is not None]
        least = "at least " if len(amounts) < len(costs) else ""
        yield f"{noun:12} {least + _shown(name, sum(amounts)) if amounts else 'not known'}"
    for name, noun in AMOUNTS.items():
        unknown = sum(cost.amount(name) is None for cost in costs)
        if unknown and name != "dollars":
            yield f"{unknown} of {_counted(len(costs))} without a record of {noun}"
    for why, count in Counter(cost.bill.unknown for cost in costs if cost.bill.dollars is None).most_common():
        yield f"{count} of {_counted(len(costs))} without a price: {why}"
    attempts = sum(cost.cost.unknown_attempts for cost in costs)
    if attempts:
        yield f"{attempts} attempt{'s were' if attempts != 1 else ' was'} killed, and recorded no cost"
    if len(costs) > 1:
        yield "most:"
        order = ("dollars", "device_s", "wall_s")
        for cost in sorted(costs, key=lambda cost: [-(cost.amount(name) or 0) for name in order])[:MOST_OUTPUTS]:
            parts = [f"{AMOUNTS[name]} {_shown(name, amount)}" for name in order if (amount := cost.amount(name))]
            yield f"  {cost.step}: {', '.join(parts) or 'not known'}"


def _to_json(costs: Sequence[OutputCost]) -> dict[str, Any]:
    """The sums with the number of outputs that each lacks, and all outputs."""
    sums = {}
    for name in AMOUNTS:
        amounts = [amount for cost in costs if (amount := cost.amount(name)) is not None]
        sums[name] = {"amount": sum(amounts), "known": len(amounts), "unknown": len(costs) - len(amounts)}
    outputs = [{"step": cost.step, "path": cost.path, **asdict(cost.cost), **asdict(cost.bill)} for cost in costs]
    return {"to_make": sums, "outputs": outputs}


def _shown(name: str, amount: float) -> str:
    if name == "dollars":
        return f"${amount:,.2f}"
    return readable_bytes(amount) if name.startswith("bytes") else readable_duration(amount)


def _counted(count: int) -> str:
    return f"{count} output{'s' * (count != 1)}"
