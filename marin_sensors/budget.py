"""A sensor that watches the costs of a prefix, and reports when a budget is spent.

    from marin_sensors.budget import budget

    month = budget(
        "month", device_hours={"tpu_v5p_32": 20_000, "gpu_H100": 500}, dollars=80_000, transferred_gb=5_000
    )

It adds up all attempts at outputs below the prefix, whichever deployment or script began them, whether they succeeded
or not, and those under way. A message is sent when a limit is spent to the shares of `tell_at`, each once in a period.
The sensor stops nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import dagster as dg

from marin_resources.configuration.settings import default_prefix, normalize_prefix
from marin_resources.host.webhook import WEBHOOK
from marin_resources.storage.usage.prices import VARIABLE as PRICES
from marin_resources.storage.usage.prices import Prices, declared_prices
from marin_resources.storage.usage.usage import UsageReader, Used, device_hours
from marin_resources.storage.usage.usage import device_hours as hours_by_pool
from marin_resources.types.errors import MarinError
from marin_sensors.webhook.channel import Channel
from marin_sensors.webhook.message import Message
from marin_sensors.webhook.reported_findings import Reported

LARGEST = 3


GB = 10**9
TRANSFERS, DOLLARS = "transfers", "dollars"
Period = Literal["day", "week", "month"]


def budget(
    name: str,
    *,
    every: Period = "month",
    device_hours: Mapping[str, float] | None = None,
    dollars: float | None = None,
    transferred_gb: float | None = None,
    tell_at: Sequence[float] = (0.8, 1.0),
    webhook_env: str = WEBHOOK,
    ui: str = "",
    every_s: int = 600,
    per_hour: int = 20,
    start: bool = True,
) -> dg.SensorDefinition:
    """A sensor named `name` on a budget. It reports, and so it runs, unless `start` is False.

    every            the period in which the limits hold: a calendar "day", "week" (from Monday) or "month", UTC
    device_hours     pool -> hours of one GPU, or of one chip of a TPU: "gpu_H100" is the pool of gpu("H100"),
                     "tpu_v5p_32" that of tpu("v5p-32")
    dollars          of all device hours, at the prices of MARIN_DEVICE_PRICES
    transferred_gb   GB (10^9 bytes) that steps read from other regions
    tell_at          shares of a limit at which a message is sent: by default 80 % and the whole
    webhook_env      the variable with the webhook's address, which is a secret; without it nothing is sent
    ui               the address of Dagster's UI, for links
    every_s          seconds between two ticks
    per_hour         posts in an hour at most
    start            whether it runs without being switched on

    Raises ValueError for no limit, a limit or share that is no positive number, and another period.
    """
    limits = _limits(name, device_hours or {}, dollars, transferred_gb)
    if every not in ("day", "week", "month"):
        raise ValueError(f"The budget {name!r} has every={every!r}, expected 'day', 'week' or 'month'.")
    if not isinstance(tell_at, Sequence) or isinstance(tell_at, str) or not tell_at:
        raise ValueError(f"The budget {name!r} has tell_at={tell_at!r}, expected a list of shares: (0.8, 1.0).")
    for share in tell_at:
        _require_positive(name, "tell_at", share)
    channel, readers = Channel(webhook_env, ui, per_hour), dict[str, UsageReader]()

    @dg.sensor(
        name=name,
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING if start else dg.DefaultSensorStatus.STOPPED,
        description=(
            f"Watches the budget of each {every}: {_described(limits)}. Posts to the webhook of {webhook_env} when "
            f"{' and '.join(f'{share:.0%}' for share in sorted(tell_at))} are spent."
        ),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        now_s = time.time()
        now = datetime.fromtimestamp(now_s, UTC)
        began = start_of(every, now)
        try:
            prefix = normalize_prefix(default_prefix())
            reader = readers.setdefault(prefix, UsageReader(prefix=prefix))
            attempts, prices = reader.used(began, now), declared_prices()
        except MarinError as error:
            return dg.SkipReason(str(error))
        spendings = [spending_of(limit_name, limit, attempts, prices) for limit_name, limit in limits.items()]
        before = Reported.parse(context.cursor, context.log.warning)
        messages = list(_messages(name, every, began, spendings, tell_at, channel))
        for message in messages:
            context.log.warning(f"{message.title}. {message.sentence}")
        delivery = channel.send(before.sent, messages, now_s)
        reported = replace(before.after({message.id: message.title for message in messages}, now_s), sent=delivery.sent)
        context.update_cursor(reported.text())
        delivery.require()
        parts = [f"{label_of(every, began)}: {'; '.join(spending.describe() for spending in spendings)}."]
        parts += [_unused(limit_name, context, attempts) for limit_name in limits]
        parts.append(_unpriced(prices, attempts) if DOLLARS in limits else "")
        return dg.SkipReason(
            " ".join(filter(None, (*parts, reported.last and reported.sentence(), delivery.sentence())))
        )

    return sensor


def _limits(
    name: str, device_hours: Mapping[str, float], dollars: float | None, transferred_gb: float | None
) -> dict[str, float]:
    others = {DOLLARS: dollars, TRANSFERS: transferred_gb}
    limits = {**device_hours, **{limit_name: limit for limit_name, limit in others.items() if limit is not None}}
    if not limits:
        raise ValueError(f"The budget {name!r} has no limit. Give it device_hours={{'gpu_H100': 500}}, for example.")
    for limit_name, limit in limits.items():
        argument = {TRANSFERS: "transferred_gb", DOLLARS: "dollars"}.get(limit_name, f"device_hours[{limit_name!r}]")
        _require_positive(name, argument, limit)
    return limits


def _described(limits: Mapping[str, float]) -> str:
    return ", ".join(f"{limit:,g} {unit_of(limit_name)} of {limit_name}" for limit_name, limit in limits.items())


def _require_positive(name: str, argument: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"The budget {name!r} has {argument}={value!r}, expected a positive number.")


def _messages(
    name: str, every: Period, began: datetime, spendings: Sequence[Spending], tell_at: Sequence[float], channel: Channel
) -> Iterator[Message]:
    """A message for the largest share of each limit that is spent."""
    for spending in spendings:
        reached = [share for share in tell_at if spending.spent >= share * spending.limit]
        if not reached:
            continue
        share = max(reached)
        largest = ", ".join(f"{step} {amount:,.1f}" for step, amount in spending.steps[:LARGEST])
        running = f" Attempts under way: {spending.running}." if spending.running else ""
        yield channel.message(
            f"{name} {began:%Y-%m-%d} {spending.name} {share:g}",
            f"Budget {name!r}: {spending.spent / spending.limit:.0%} of {spending.name} spent",
            f"{label_of(every, began)}: {spending.describe()}. The largest: {largest}.{running}",
            run_id=spending.run_id,
        )


def _unused(limit_name: str, context: dg.SensorEvaluationContext, attempts: Sequence[Used]) -> str:
    """A sentence about a pool that nobody uses and no asset is in, which may be misspelled."""
    if (
        limit_name in (TRANSFERS, DOLLARS)
        or any(attempt.entry.pool == limit_name for attempt in attempts)
        or context.repository_def is None
    ):
        return ""
    graph = context.repository_def.asset_graph
    pools = sorted({pool for key in graph.materializable_asset_keys for pool in graph.get(key).pools or ()})
    if limit_name in pools:
        return ""
    return f"No asset is in the pool {limit_name!r}: {f'the pools are {pools}' if pools else 'none has a device'}."


def _unpriced(prices: Prices, attempts: Sequence[Used]) -> str:
    """A sentence about hours that the limit in dollars does not count."""
    if not (pools := prices.cost(hours_by_pool(attempts)).unpriced):
        return ""
    return f"No price is declared for {', '.join(pools)}: without {PRICES}, the dollars lack these hours."


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
