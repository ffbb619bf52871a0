"""What an output cost to make: seconds, device hours, and dollars at today's prices. What is not known stays None."""

from __future__ import annotations

from dataclasses import dataclass

from marin_resources.storage.output.notes.cost import cost_of
from marin_resources.storage.usage.cost_estimate import PriceList, bill_of
from marin_resources.types.record import Record


@dataclass(frozen=True, kw_only=True)
class MakingCost:
    seconds: float | None = None
    """From the claims to the ends of its attempts."""
    device_hours: float = 0.0
    """Of one GPU, or of one chip of a TPU."""
    dollars: float | None = None


def making_cost(record: Record, prices: PriceList) -> MakingCost:
    """What an output with this record cost."""
    cost = cost_of(record)
    return MakingCost(seconds=cost.wall_s, device_hours=cost.device_hours or 0.0, dollars=bill_of(cost, prices).dollars)
