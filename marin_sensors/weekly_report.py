"""An asset that reports the runs of a week, their costs, and unsynced assets; and the schedule that materializes it.

    from marin_sensors.weekly_report import weekly_report

    report, every_monday = weekly_report(cron="0 7 * * 1", start=True)

The asset's page shows a summary, tables, and numbers that Dagster plots over the weeks. The same is a page of HTML at
`<MARIN_PREFIX>/reports/weekly/<date>.html`. It is no step: it has no version, and nothing reads it.
"""

import asyncio
import zoneinfo
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from marin_resources.orchestrator.links import link_to
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_sensors.runs.cron import require_cron

if TYPE_CHECKING:
    from marin_sensors.weekly.report import Report
    from marin_sensors.weekly.tables import Table

FOLDER, GROUP = "reports", "reports"
SHOWN_ROWS = 50
"""Limit of a table on Dagster's page. Its database stores them for every materialization."""


class WeeklyReportConfig(dg.Config):
    until: str = Field(default="", description="The end of the time, such as 2026-01-12T07:00; now, if empty.")


def weekly_report(
    name: str = "weekly_report",
    *,
    cron: str = "0 7 * * 1",
    timezone: str = "UTC",
    days: float = 7,
    ui: str = "",
    start: bool = False,
) -> tuple[dg.AssetsDefinition, dg.ScheduleDefinition]:
    """An asset named `name`, and a schedule of that name that materializes it.

    cron      when: "0 7 * * 1" is every Monday at seven, in the time zone
    days      that the report is about
    ui        the address of Dagster's UI, for links on the page of HTML
    start     whether the schedule runs without being switched on
    """
    require_cron(name, cron, timezone)
    if not days > 0:
        raise ValueError(f"The report {name!r} has days={days!r}, expected days above 0.")
    zone = zoneinfo.ZoneInfo(timezone)

    @dg.asset(
        name=name,
        group_name=GROUP,
        kinds={"html"},
        description=f"What ran in {days:g} days, what it cost, and what is unsynced. It is no step.",
    )
    async def asset(context: dg.AssetExecutionContext, config: WeeklyReportConfig) -> dg.MaterializeResult:
        until = _time(config.until, zone)
        graph = _graph(context)
        return await asyncio.to_thread(_materialize, context, graph, name, until - timedelta(days=days), until, ui)

    @dg.schedule(
        name=name,
        job=dg.define_asset_job(f"{name}_job", dg.AssetSelection.assets(asset), description=f"Materializes {name}."),
        cron_schedule=cron,
        execution_timezone=timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING if start else dg.DefaultScheduleStatus.STOPPED,
        description=f"Materializes {name}: what ran in the {days:g} days before.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        until = context.scheduled_execution_time.isoformat()  # one report ends where the next begins
        return dg.RunRequest(run_config={"ops": {asset.op.name: {"config": {"until": until}}}})

    return asset, schedule


def _time(text: str, zone: zoneinfo.ZoneInfo) -> datetime:
    """The end of the time, in the zone. Raises dg.Failure for a text that is none, and for a time to come."""
    now = datetime.now(zone)
    if not text:
        return now
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        raise _failure(f"The report has until={text!r}, expected a time such as '2026-01-12T07:00'.") from None
    until = until.astimezone(zone) if until.tzinfo is not None else until.replace(tzinfo=zone)
    if until > now:
        raise _failure(f"The report has until={text!r}, expected a time that has passed.")
    return until


def _graph(context: dg.AssetExecutionContext) -> Any:
    """All assets of the code location. Raises dg.Failure in a run that has none."""
    try:
        return context.repository_def.asset_graph
    except Exception:  # Dagster's CheckError, which has no public name
        raise _failure(
            "The report needs the code location, and this run has none. Materialize it in Dagster's UI, or by its "
            "schedule."
        ) from None


def _materialize(
    context: dg.AssetExecutionContext, graph: Any, name: str, since: datetime, until: datetime, ui: str
) -> dg.MaterializeResult:
    from marin_sensors.weekly.page import draw  # here, as a code location loads what makes no report
    from marin_sensors.weekly.report import make_report

    try:
        store = StoreResource().store()
        report = make_report(graph, context.instance, store, since, until, context.asset_key)
        path = join(store.prefix, FOLDER, name.removesuffix("_report"), f"{until:%Y-%m-%d}.html")
        write_bytes(path, draw(report, name, ui).encode())
    except MarinError as error:
        raise _failure(str(error)) from error
    return dg.MaterializeResult(metadata=_metadata(report, path))


def _metadata(report: "Report", path: str) -> dict[str, Any]:
    """The metadata of the asset's page, in this order."""
    from marin_sensors.weekly.tables import summary_of, tables_of

    shown: dict[str, Any] = {"summary": dg.MetadataValue.md(summary_of(report)), "report": link_to(path)}
    for table in tables_of(report):
        more = f" (first {SHOWN_ROWS} of {len(table.rows)})" if len(table.rows) > SHOWN_ROWS else ""
        shown[f"{table.title}{more}"] = _table(table)
    if report.unknown:
        shown["unknown"] = dg.MetadataValue.md("\n".join(f"- {sentence}" for sentence in report.unknown))
    return shown | {**report.numbers(), "since": report.since.isoformat(), "until": report.until.isoformat()}


def _table(table: "Table") -> dg.MetadataValue:
    rows = table.rows[:SHOWN_ROWS]
    kinds = [{type(row[place]) for row in rows} for place in range(len(table.columns))]
    schema = [
        dg.TableColumn(column, "int" if kind == {int} else "float" if kind <= {int, float} else "string")
        for column, kind in zip(table.columns, kinds, strict=True)
    ]
    records = [dg.TableRecord(dict(zip(table.columns, row, strict=True))) for row in rows]
    return dg.MetadataValue.table(records, dg.TableSchema(schema))


def _failure(sentence: str) -> dg.Failure:
    """A failure as the sensor `failures` reads it."""
    return dg.Failure(sentence, metadata={"error": sentence}, allow_retries=False)
