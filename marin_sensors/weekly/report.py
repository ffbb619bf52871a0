"""The contents of a report of some days: rows, numbers and sentences. Nothing here is of Dagster's pages, or HTML.

In:  Dagster's history, the store, what was used.   Out: a Report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import dagster as dg

from marin_resources.orchestrator.io_manager import NAME
from marin_resources.storage.output.store import Store
from marin_resources.storage.usage.prices import Prices, declared_prices
from marin_resources.storage.usage.usage import Used, device_hours, used
from marin_resources.types.versioned_json import ControlFileError
from marin_sensors.queries.materialized_versions import steps_of
from marin_sensors.unsynced import Unsynced, find_unsynced
from marin_sensors.weekly.run_history import Failed, Ran, Week, read_week

GB = 1e9


@dataclass(frozen=True, kw_only=True)
class Row:
    """An asset that ran, or cost something."""

    asset: str
    computed: int
    reused: int
    failed: int
    hours: float
    """Hours of computing, summed over its outputs."""
    device_hours: float
    dollars: float
    """Cost of the device hours whose price is declared."""
    transferred_gb: float
    """From other regions."""
    goodput: float | None
    """Goodput of its tries on slices; None if it ran on none."""


@dataclass(frozen=True, kw_only=True)
class Report:
    since: datetime
    until: datetime
    runs: int
    failed_runs: Sequence[Failed]
    rows: Sequence[Row]
    """The most expensive first."""
    unsynced: Sequence[Unsynced] | None
    """At the time of the report; None if that is unknown."""
    pools: Mapping[str, float] | None
    """Pool -> device hours; None if they are unknown, and then transfers are too."""
    prices: Prices
    """Prices of device hours, as declared."""
    unknown: Sequence[str]
    """Sentences about what could not be read."""

    def numbers(self) -> dict[str, int | float]:
        """Numbers by names that stay, so that Dagster plots them over the weeks. What is unknown is left out."""
        numbers: dict[str, int | float] = {
            "runs": self.runs,
            "failed_runs": len(self.failed_runs),
            "computed": sum(row.computed for row in self.rows),
            "reused": sum(row.reused for row in self.rows),
            "failed": sum(row.failed for row in self.rows),
            "hours": round(sum(row.hours for row in self.rows), 3),
        }
        if self.pools is not None:
            numbers["device_hours"] = round(sum(self.pools.values()), 3)
            numbers |= {f"device_hours_{pool}": round(hours, 3) for pool, hours in sorted(self.pools.items())}
            if self.prices:
                numbers["dollars"] = round(sum(row.dollars for row in self.rows), 2)
            numbers["transferred_gb"] = round(sum(row.transferred_gb for row in self.rows), 3)
        if self.unsynced is not None:
            numbers["unsynced"] = len(self.unsynced)
        return numbers


def make_report(
    graph: Any,
    instance: dg.DagsterInstance,
    store: Store,
    since: datetime,
    until: datetime,
    but: dg.AssetKey,
) -> Report:
    """The report from `since` to `until`, without the asset that it is. Raises UnavailableError, and SettingError."""
    week, unknown, prices = read_week(instance, since, until, but), list[str](), declared_prices()
    attempts: list[Used] | None = None
    unsynced: list[Unsynced] | None = None
    try:
        attempts = used(store.prefix, since, until)
    except ControlFileError as error:
        unknown.append(f"Device hours and transfers are unknown: {error}")
    pools = None if attempts is None else device_hours(attempts)
    if prices and pools and (unpriced := prices.cost(pools).unpriced):
        unknown.append(f"No price is declared for the device hours of {', '.join(unpriced)}: they are in no dollars.")
    try:
        unsynced = find_unsynced(graph, instance, store)
    except ControlFileError as error:
        unknown.append(f"What is unsynced is unknown: {error}")
    return Report(
        since=since,
        until=until,
        runs=week.runs,
        failed_runs=week.failed,
        rows=sorted(_rows(week, attempts or (), _assets_by_step(graph), prices), key=_expense),
        unsynced=unsynced,
        pools=pools,
        prices=prices,
        unknown=unknown,
    )


def _rows(week: Week, attempts: Iterable[Used], assets: Mapping[str, str], prices: Prices) -> list[Row]:
    by_asset: dict[str, list[Used]] = {}
    for attempt in attempts:
        by_asset.setdefault(_asset_of(attempt.entry.step, assets), []).append(attempt)
    ran_by_asset = {**{name: Ran() for name in by_asset}, **week.assets}
    return [
        Row(
            asset=name,
            computed=ran.computed,
            reused=ran.reused,
            failed=ran.failed,
            hours=ran.compute_s / 3600,
            device_hours=sum(hours.values()),
            dollars=prices.cost(hours).dollars,
            transferred_gb=sum(attempt.moved_bytes for attempt in by_asset.get(name, ())) / GB,
            goodput=ran.goodput,
        )
        for name, ran in ran_by_asset.items()
        for hours in [device_hours(by_asset.get(name, ()))]
    ]


def _expense(row: Row) -> tuple[float, float, float, str]:
    return -row.device_hours, -row.hours, -row.transferred_gb, row.asset


def _assets_by_step(graph: Any) -> dict[str, str]:
    """Name of a step -> its asset."""
    return {graph.get(key).metadata[NAME]: key.to_user_string() for key in steps_of(graph)}


def _asset_of(label: str, assets: Mapping[str, str]) -> str:
    """The asset of a label such as "train/x[key]"; of a step that is not in the code location, the step's name."""
    name = label if label in assets else label.partition("[")[0]
    return assets.get(name, name)
