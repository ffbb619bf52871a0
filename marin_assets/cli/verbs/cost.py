"""Say what an output has cost with all that it was made from, each shared ancestor once; and to make all of it again.

To make is the sum over the records: attempts that failed are in it. To make all again is the sum of the medians of the
newest complete outputs of each step. Prices are today's: MARIN_DEVICE_PRICES, and `chip_dollars` and `cpu_dollars` of
the clusters' catalogue. What is not recorded, or has no price, is said and is in no sum. It computes nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
from collections.abc import Sequence
from typing import Any

from marin_assets.cli.materialization_options import Named, add_materialization, named
from marin_assets.inspection.cost.lineage import costs_again, costs_of
from marin_assets.inspection.cost.lines import gaps, lines_of
from marin_assets.inspection.cost.sums import OutputCost, total_of, unknown_prices
from marin_assets.inspection.explain.materializations import Materialization
from marin_assets.run.options import prefix_of
from marin_assets.run.output import print_line
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.index.complete import CompleteOutputs


def add_options(parser: argparse.ArgumentParser) -> None:
    add_materialization(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, with each output")


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    step = named(options, store)
    this, complete = step.chosen(options.at), CompleteOutputs(store.prefix)
    made = costs_of(this.path, this.record, complete)
    again = costs_again(made, complete)
    today = _today(step, this, "marin plan" if options.script is None else f"marin plan {shlex.quote(options.script)}")
    if options.json:
        about = {"step": step.label, "version": this.version, "path": this.path, "today": today}
        print_line(json.dumps({**about, **to_json(made, again)}, indent=2))
    else:
        count = f"{len(made)} output{'s' * (len(made) != 1)}"
        print_line(f"{step.label}, version {this.version}: {count} with all that it was made from")
        for line in lines_of(made, again, today):
            print_line(line)
    return 0


def _today(step: Named, this: Materialization, plan: str) -> str:
    """A sentence on the cost of a run today: nothing, if the output of the code's version is complete."""
    if step.node is None:
        return "The code has no such step any more: nothing makes it today."
    if this.version != step.node.version.hash:
        return f"The code has version {step.node.version.hash} now: `{plan}` says what that costs."
    if this.complete and not this.removed:
        return "Today it costs nothing: it is complete, and a run reuses it."
    return f"Its output is not there: `{plan}` says what of it a run computes today, and what it reuses."


def to_json(made: Sequence[OutputCost], again: Sequence[OutputCost]) -> dict[str, Any]:
    return {
        "to_make": _totals(made),
        "to_make_again": _totals(again),
        "not_known": list(gaps(made)),
        "outputs": [
            {**_output(output), "again": {**dataclasses.asdict(other.cost), "dollars": other.dollars}}
            for output, other in zip(made, again, strict=True)
        ],
    }


def _totals(costs: Sequence[OutputCost]) -> dict[str, Any]:
    totals = {name: vars(total) for name, total in total_of(costs).items()}
    return {**totals, "unpriced": dict(unknown_prices(costs))}


def _output(output: OutputCost) -> dict[str, Any]:
    return {
        "step": output.label,
        "path": output.path,
        "recorded": output.recorded,
        **dataclasses.asdict(output.cost),
        "transferred_bytes": output.transferred_bytes,
        "dollars": output.dollars,
        "unpriced": output.bill.unknown or None,
    }
