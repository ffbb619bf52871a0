"""The times of a schedule: whether Dagster can take them."""

from __future__ import annotations

import zoneinfo

from dagster._utils.schedules import is_valid_cron_schedule


def require_cron(schedule: str, cron: str, timezone: str) -> None:
    """Raise ValueError, one sentence, for what is no cron expression or no time zone."""
    if not is_valid_cron_schedule(cron):
        raise ValueError(f"The schedule {schedule!r} has cron={cron!r}, expected five fields such as '0 5 * * *'.")
    if timezone not in zoneinfo.available_timezones():
        raise ValueError(f"The schedule {schedule!r} has timezone={timezone!r}, expected one such as 'Europe/Zurich'.")
