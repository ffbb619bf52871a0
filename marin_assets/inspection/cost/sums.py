"""Sums of costs, with how many of them each sum lacks. Pure.

Amounts that a record lacks are counted, and never guessed: "3 of 12 steps have no record of CPU seconds".
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
"""Amounts that are summed -> their names in sentences."""


@dataclass(frozen=True, kw_only=True)
class OutputCost:
    """One output of a lineage."""

    label: str
    """Name of the step, with the key of a partition."""
    path: str
    recorded: bool
    cost: RecordCost
    bill: CostEstimate
    transferred_bytes: int | None = 0
    """Bytes from other regions. None: its ledger is damaged."""
    transferred_dollars: float | None = 0.0

    @property
    def name(self) -> str:
        return self.label.partition("[")[0]

    @property
    def dollars(self) -> float | None:
        """Price with its transfers; None if its bill is not known."""
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
    """Number of outputs without a recorded amount. They are not in the sum."""


def total_of(costs: Iterable[OutputCost]) -> dict[str, Total]:
    """Totals by the names of `AMOUNTS`."""
    every = list(costs)
    amounts = {name: [output.amount(name) for output in every] for name in AMOUNTS}
    recorded = {name: [amount for amount in column if amount is not None] for name, column in amounts.items()}
    return {
        name: Total(amount=sum(column), known=len(column), unknown=len(every) - len(column))
        for name, column in recorded.items()
    }


def unknown_prices(costs: Iterable[OutputCost]) -> Counter[str]:
    """Reason for an unknown price -> number of outputs."""
    return Counter(output.bill.unknown for output in costs if output.bill.dollars is None)
