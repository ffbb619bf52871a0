"""Sets with a key for each window of time. Keys and windows are Dagster's, in UTC."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.values import ConfigError

DAY = "%Y-%m-%d"


class Cadence(enum.Enum):
    """Length of a window of time. The value is the name of the function that creates such a set."""

    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    """From Sunday, as Dagster's weeks."""
    MONTHLY = "monthly"

    @property
    def key_format(self) -> str:
        return "%Y-%m-%d-%H:%M" if self is Cadence.HOURLY else DAY

    def floor(self, moment: datetime) -> datetime:
        """The start of the window that holds the moment."""
        hour = moment.replace(minute=0, second=0, microsecond=0)
        day = hour.replace(hour=0)
        if self is Cadence.HOURLY:
            return hour
        if self is Cadence.WEEKLY:
            return day - timedelta(days=(day.weekday() + 1) % 7)
        return day.replace(day=1) if self is Cadence.MONTHLY else day

    def next(self, start: datetime) -> datetime:
        """The end of the window that starts then."""
        if self is Cadence.HOURLY:
            return start + timedelta(hours=1)
        if self is Cadence.MONTHLY:
            return (start + timedelta(days=31)).replace(day=1)
        return start + timedelta(days=7 if self is Cadence.WEEKLY else 1)

    def divides(self, other: Cadence) -> bool:
        """Whether windows of the other cadence consist of several whole windows of this one."""
        order = [Cadence.HOURLY, Cadence.DAILY, Cadence.WEEKLY, Cadence.MONTHLY]
        return order.index(self) < order.index(other) and self is not Cadence.WEEKLY


@dataclass(frozen=True)
class TimePartitions(Partitions):
    cadence: Cadence
    start: datetime
    """The start of the first window, in UTC."""

    @property
    def label(self) -> str:
        return self.cadence.value

    @property
    def mark(self) -> str:
        return self.cadence.value

    @property
    def fixed_keys(self) -> None:
        return None

    def keys_now(self, now: datetime, grown: Callable[[str], Sequence[str]]) -> Sequence[str]:
        """Those of the windows that have ended."""
        return list(self.keys_between(self.start, now))

    def require(self, key: str) -> None:
        if self.window(key)[0] < self.start:
            raise ConfigError(
                f"There is no partition {key!r}: the first one is {self.key_at(self.start)!r}. Give a later key, or "
                f"an earlier start to {self.cadence.value}()."
            )

    def window(self, key: str) -> tuple[datetime, datetime]:
        """The start and the end of a key's window, in UTC. Raises ConfigError."""
        try:
            start = datetime.strptime(key, self.cadence.key_format).replace(tzinfo=UTC)
        except (ValueError, TypeError):
            start = None
        if start is None or self.key_at(start) != key or self.cadence.floor(start) != start:
            raise ConfigError(
                f"There is no partition {key!r}. Expected the start of a window of {self}, such as "
                f"{self.key_at(self.start)!r}."
            )
        return start, self.cadence.next(start)

    def key_at(self, start: datetime) -> str:
        """The key of the window that starts then."""
        return start.strftime(self.cadence.key_format)

    def keys_between(self, start: datetime, end: datetime) -> Iterator[str]:
        """The keys of the windows from `start` on that end by `end`. `start` is the start of a window."""
        while (after := self.cadence.next(start)) <= end:
            yield self.key_at(start)
            start = after

    def __repr__(self) -> str:
        return f"{self.cadence.value}({self.key_at(self.start)!r})"


def hourly(start: str | date) -> TimePartitions:
    """A key for each hour in UTC from `start` on: "2026-01-01", or "2026-01-01-13:00"."""
    return _time(Cadence.HOURLY, start)


def daily(start: str | date) -> TimePartitions:
    """A key for each day in UTC from `start` on: "2026-01-01"."""
    return _time(Cadence.DAILY, start)


def weekly(start: str | date) -> TimePartitions:
    """A key for each week in UTC from the Sunday `start` on: "2026-01-04"."""
    return _time(Cadence.WEEKLY, start)


def monthly(start: str | date) -> TimePartitions:
    """A key for each month in UTC from `start` on, its first day: "2026-01-01"."""
    return _time(Cadence.MONTHLY, start)


def _time(cadence: Cadence, start: str | date) -> TimePartitions:
    moment = _moment(cadence, start)
    if cadence.floor(moment) != moment:
        raise ConfigError(
            f"{cadence.value}({start!r}) does not start with a window. Its window starts at "
            f"{cadence.floor(moment).strftime(cadence.key_format)!r}: pass that, or the next one."
        )
    return TimePartitions(cadence, moment)


def _moment(cadence: Cadence, start: Any) -> datetime:
    if isinstance(start, datetime):
        if start.utcoffset():
            raise ConfigError(f"{cadence.value}({start!r}) is not in UTC, as all keys are. Convert it.")
        return start.replace(tzinfo=UTC)
    if isinstance(start, date):
        return datetime(start.year, start.month, start.day, tzinfo=UTC)
    for form in (DAY, cadence.key_format):
        try:
            return datetime.strptime(start, form).replace(tzinfo=UTC)
        except (ValueError, TypeError):
            continue
    raise ConfigError(f"{cadence.value}({start!r}) is not a day. Expected a text such as '2026-01-04', or a date.")
