"""What a budget counts: a limit, what is spent of it, and by which steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from marin_resources.storage.usage.prices import Prices
from marin_resources.storage.usage.usage import Used, device_hours

GB = 10**9
TRANSFERS, DOLLARS = "transfers", "dollars"
Period = Literal["day", "week", "month"]


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What a limit counts, and how much of it is spent."""

    name: str
    """A pool, "dollars" or "transfers"."""
    unit: str
    limit: float
    spent: float
    steps: Sequence[tuple[str, float]]
    """Steps with their shares of what is spent, the largest first."""
    running: int
    """Attempts under way."""
    run_id: str
    """A run of the largest step, for the link."""

    def describe(self) -> str:
        """As a phrase: "gpu_H100: 412.5 of 500 device hours"."""
        if self.name == DOLLARS:
            return f"{self.name}: {self.spent:,.2f} of {self.limit:,g}"
        return f"{self.name}: {self.spent:,.1f} of {self.limit:,g} {self.unit}"


def start_of(every: Period, now: datetime) -> datetime:
    """When the period of this moment began."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if every == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if every == "month" else day


def label_of(every: Period, began: datetime) -> str:
    """The period that began then: "2026-01", "Week of 2026-01-26", "2026-01-31"."""
    return f"{began:%Y-%m}" if every == "month" else f"{'Week of ' * (every == 'week')}{began:%Y-%m-%d}"


def unit_of(what: str) -> str:
    """What the limit `what` is counted in."""
    return {TRANSFERS: "GB", DOLLARS: "dollars"}.get(what, "device hours")


def spending_of(what: str, limit: float, found: Sequence[Used], prices: Prices) -> Spending:
    """What was spent of the limit of a pool, of "dollars", or of "transfers"."""
    mine = [each for each in found if what in (TRANSFERS, DOLLARS, each.entry.pool)]
    by_step: dict[str, float] = {}
    for each in mine:
        by_step[each.entry.step] = by_step.get(each.entry.step, 0.0) + _amount(what, each, prices)
    steps = sorted(((step, amount) for step, amount in by_step.items() if amount), key=lambda pair: (-pair[1], pair[0]))
    runs = [each.entry.run_id for each in mine if steps and each.entry.step == steps[0][0] and each.entry.run_id]
    return Spending(
        name=what,
        unit=unit_of(what),
        limit=limit,
        spent=sum(by_step.values()),
        steps=steps,
        running=sum(not each.ended for each in mine),
        run_id=str(runs[-1]) if runs else "",
    )


def _amount(what: str, used: Used, prices: Prices) -> float:
    if what == TRANSFERS:
        return used.moved_bytes / GB
    return prices.cost(device_hours([used])).dollars if what == DOLLARS else used.hours
