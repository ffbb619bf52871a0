"""The times of a schedule: whether Dagster can take them."""

from __future__ import annotations

import zoneinfo

import dagster as dg


def require_cron(schedule: str, cron: str, timezone: str) -> None:
    """Raise ValueError, one sentence, for what is no cron expression or no time zone."""
    try:
        dg.ScheduleDefinition(job_name=schedule, cron_schedule=cron)
    except dg.DagsterInvalidDefinitionError:
        sentence = f"The schedule {schedule!r} has cron={cron!r}, expected five fields such as '0 5 * * *'."
        raise ValueError(sentence) from None
    try:
        zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):  # OSError: "Europe" is a folder
        sentence = f"The schedule {schedule!r} has timezone={timezone!r}, expected one such as 'Europe/Zurich'."
        raise ValueError(sentence) from None
