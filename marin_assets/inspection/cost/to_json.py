"""Costs as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from marin_assets.inspection.cost.lines import gaps
from marin_assets.inspection.cost.sums import OutputCost, total_of, unknown_prices


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
