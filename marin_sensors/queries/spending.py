"""The spending of a budget: a limit, the amount that is spent of it, and the steps that spent it."""

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
    """A limit, and the amount that is spent of it."""

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
    """The beginning of the period of this moment."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if every == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if every == "month" else day


def label_of(every: Period, began: datetime) -> str:
    """The period that began then: "2026-01", "Week of 2026-01-26", "2026-01-31"."""
    return f"{began:%Y-%m}" if every == "month" else f"{'Week of ' * (every == 'week')}{began:%Y-%m-%d}"


def unit_of(limit_name: str) -> str:
    """The unit of a limit."""
    return {TRANSFERS: "GB", DOLLARS: "dollars"}.get(limit_name, "device hours")


def spending_of(limit_name: str, limit: float, attempts: Sequence[Used], prices: Prices) -> Spending:
    """The spending of the limit of a pool, of "dollars", or of "transfers"."""
    counted = [attempt for attempt in attempts if limit_name in (TRANSFERS, DOLLARS, attempt.entry.pool)]
    by_step: dict[str, float] = {}
    for attempt in counted:
        by_step[attempt.entry.step] = by_step.get(attempt.entry.step, 0.0) + _amount(limit_name, attempt, prices)
    steps = sorted(((step, amount) for step, amount in by_step.items() if amount), key=lambda pair: (-pair[1], pair[0]))
    runs = [
        attempt.entry.run_id
        for attempt in counted
        if steps and attempt.entry.step == steps[0][0] and attempt.entry.run_id
    ]
    return Spending(
        name=limit_name,
        unit=unit_of(limit_name),
        limit=limit,
        spent=sum(by_step.values()),
        steps=steps,
        running=sum(not attempt.ended for attempt in counted),
        run_id=str(runs[-1]) if runs else "",
    )


def _amount(limit_name: str, used: Used, prices: Prices) -> float:
    if limit_name == TRANSFERS:
        return used.moved_bytes / GB
    return prices.cost(device_hours([used])).dollars if limit_name == DOLLARS else used.hours
