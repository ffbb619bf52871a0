"""A report in words and tables: a summary in Markdown, and the rows of each table, for Dagster's page and for ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from marin_sensors.weekly.report import Report

Cell = str | int | float


@dataclass(frozen=True, kw_only=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    links: Sequence[str] = ()
    """The link of each row, a path below the UI's address; empty without links."""


def summary_of(report: Report) -> str:
    """A few sentences in Markdown. Dagster shows less than a thousand characters in place."""
    numbers = report.numbers()
    sentences = [
        f"**{title_of(report)}**\n\n{_count(report.runs, 'run')} ended, {len(report.failed_runs)} failed.",
        f"{_count(int(numbers['computed']), 'output')} computed in {_hours(numbers['hours'])}, "
        f"{numbers['reused']} reused.",
    ]
    if report.pools is not None:
        hours_by_pool = ", ".join(f"{pool} {hours:,.1f}" for pool, hours in sorted(report.pools.items())[:5])
        cost = f" for ${numbers['dollars']:,.2f}" if "dollars" in numbers else ""
        sentences.append(
            f"{numbers['device_hours']:,.1f} device hours{cost}{f' ({hours_by_pool})' if hours_by_pool else ''}."
        )
        sentences.append(f"{numbers['transferred_gb']:,.1f} GB from other regions.")
    if report.unsynced is not None:
        sentences.append(f"{_count(len(report.unsynced), 'asset')} unsynced.")
    return " ".join([*sentences, *(sentence[:200] for sentence in report.unknown)])


def title_of(report: Report) -> str:
    """The time of the report: "2026-01-05 07:00 to 2026-01-12 07:00 (UTC)"."""
    zone = report.until.tzname() or "UTC"
    return f"{report.since:%Y-%m-%d %H:%M} to {report.until:%Y-%m-%d %H:%M} ({zone})"


def tables_of(report: Report) -> list[Table]:
    """The assets, the runs that failed, what is unsynced, the prices; without those that are empty."""
    zone = report.until.tzinfo
    tables = [
        Table(
            title="assets",
            columns=(
                "asset",
                "device hours",
                *(["dollars"] if report.prices else []),
                "hours",
                "computed",
                "reused",
                "failed",
                "GB transferred",
                "goodput",
            ),
            rows=[
                (
                    row.asset,
                    round(row.device_hours, 2),
                    *([round(row.dollars, 2)] if report.prices else []),
                    round(row.hours, 2),
                    row.computed,
                    row.reused,
                    row.failed,
                    round(row.transferred_gb, 2),
                    "" if row.goodput is None else f"{100 * row.goodput:.0f} %",
                )
                for row in report.rows
            ],
            links=[f"assets/{quote(row.asset)}" for row in report.rows],
        ),
        Table(
            title="runs that failed",
            columns=("ended", "run", "what", "why"),
            rows=[
                (
                    f"{datetime.fromtimestamp(run.ended_s, UTC).astimezone(zone):%Y-%m-%d %H:%M}",
                    run.run_id[:8],
                    run.name,
                    run.sentence,
                )
                for run in report.failed_runs
            ],
            links=[f"runs/{run.run_id}" for run in report.failed_runs],
        ),
        Table(
            title="unsynced now",
            columns=("asset", "version now", "partitions"),
            rows=[
                (stale.key.to_user_string(), stale.output.version, str(len(stale.partitions) or ""))
                for stale in report.unsynced or ()
            ],
            links=[f"assets/{quote(stale.key.to_user_string())}" for stale in report.unsynced or ()],
        ),
        Table(
            title="prices",
            columns=("device", "dollars an hour", "of the day"),
            rows=[(price.device, price.dollars, price.on.isoformat()) for price in report.prices.all],
        ),
    ]
    return [table for table in tables if table.rows]


def _count(number: int, singular: str) -> str:
    return f"{number} {singular}{'s' * (number != 1)}"


def _hours(hours: float) -> str:
    return f"{hours:,.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"
