"""Sums of costs, with how many of them each sum lacks. Pure.

What a record does not say is counted, and never guessed: "3 of 12 steps have no record of CPU seconds".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from marin_resources.storage.output.notes.cost import RecordCost
from marin_resources.storage.usage.cost_estimate import CostEstimate

AMOUNTS: Mapping[str, str] = {
    "wall_s": "time",
    "cpu_s": "CPU seconds",
    "device_s": "device hours",
    "bytes_in": "bytes read",
    "bytes_out": "bytes written",
    "dollars": "a price",
}
"""What is summed -> what people call it."""


@dataclass(frozen=True, kw_only=True)
class OutputCost:
    """One output of a lineage."""

    label: str
    """Its step, with the key of a partition."""
    path: str
    recorded: bool
    cost: RecordCost
    bill: CostEstimate
    transferred_bytes: int | None = 0
    """From other regions. None: its ledger is damaged."""
    transferred_dollars: float | None = 0.0

    @property
    def name(self) -> str:
        return self.label.partition("[")[0]

    @property
    def dollars(self) -> float | None:
        """With its transfers; None if its bill is not known."""
        if self.bill.dollars is None:
            return None
        return self.bill.dollars + (self.transferred_dollars or 0.0)

    def amount(self, name: str) -> float | None:
        return self.dollars if name == "dollars" else getattr(self.cost, name)


@dataclass(frozen=True, kw_only=True)
class Total:
    """The sum of one amount over outputs."""

    amount: float
    known: int
    unknown: int
    """So many outputs do not say, and are not in it."""


def total_of(costs: Iterable[OutputCost]) -> dict[str, Total]:
    """By the names of `AMOUNTS`."""
    every = list(costs)
    amounts = {name: [each.amount(name) for each in every] for name in AMOUNTS}
    known = {name: [amount for amount in some if amount is not None] for name, some in amounts.items()}
    return {
        name: Total(amount=sum(some), known=len(some), unknown=len(every) - len(some)) for name, some in known.items()
    }


def unknown_prices(costs: Iterable[OutputCost]) -> Counter[str]:
    """Why a price is not known -> of how many outputs."""
    return Counter(each.bill.unknown for each in costs if each.bill.dollars is None)
