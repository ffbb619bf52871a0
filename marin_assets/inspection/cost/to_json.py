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
            {**_output(each), "again": {**dataclasses.asdict(other.cost), "dollars": other.dollars}}
            for each, other in zip(made, again, strict=True)
        ],
    }


def _totals(costs: Sequence[OutputCost]) -> dict[str, Any]:
    totals = {name: vars(total) for name, total in total_of(costs).items()}
    return {**totals, "unpriced": dict(unknown_prices(costs))}


def _output(each: OutputCost) -> dict[str, Any]:
    return {
        "step": each.label,
        "path": each.path,
        "recorded": each.recorded,
        **dataclasses.asdict(each.cost),
        "transferred_bytes": each.transferred_bytes,
        "dollars": each.dollars,
        "unpriced": each.bill.unknown or None,
    }
