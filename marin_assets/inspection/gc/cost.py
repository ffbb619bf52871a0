"""The cost to make an output: seconds, device hours, and dollars at today's prices. Unknown amounts stay None."""

from __future__ import annotations

from dataclasses import dataclass

from marin_resources.storage.output.notes.cost import cost_of
from marin_resources.storage.usage.cost_estimate import PriceList, bill_of
from marin_resources.types.record import Record


@dataclass(frozen=True, kw_only=True)
class MakingCost:
    seconds: float | None = None
    """Seconds from the claims to the ends of its attempts."""
    device_hours: float = 0.0
    """Hours of one GPU, or of one chip of a TPU."""
    dollars: float | None = None


def making_cost(record: Record, prices: PriceList) -> MakingCost:
    """The cost of the output with this record."""
    cost = cost_of(record)
    return MakingCost(seconds=cost.wall_s, device_hours=cost.device_hours or 0.0, dollars=bill_of(cost, prices).dollars)
