"""The usage in a time: device hours of the attempts that held devices in it, and bytes from other regions.

An attempt on slices holds devices while one of its tries runs, and nothing while it waits for other hosts. A try on
more slices holds more. Any other attempt holds its devices from its start to its end. One that is under way holds them
until now, in a bucket until the last renewal of its lease. One whose worker has died held them until its last sign: the
renewal, or the last change of its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from marin_resources.storage.files import changed_at
from marin_resources.storage.lease import lease
from marin_resources.storage.output.attempts import log_path, read_attempt
from marin_resources.storage.transfer.budget import moved_bytes
from marin_resources.storage.usage.entries import THREADS, Entry, UsageError, entries, read_entry

LONGEST = timedelta(days=60)
"""An attempt that began longer before is not looked for."""


HOUR = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Used:
    """The usage of an attempt in the requested time."""

    entry: Entry
    hours: float
    """Device hours: of one GPU, or of one chip of a TPU."""
    moved_bytes: int
    """Bytes from other regions, of the attempts at this output in the time; only the first of them has it."""
    ended: bool


@dataclass(kw_only=True)
class UsageReader:
    """Reads the usage below a prefix. It remembers attempts that have ended: query one reader again and again."""

    prefix: str
    _entries: dict[str, Entry] = field(default_factory=dict)
    _ended: dict[str, Held] = field(default_factory=dict)
    """Path of an entry -> what its attempt has held, once that has ended."""

    def used(self, since: datetime, until: datetime) -> list[Used]:
        """The usage of each attempt from `since` to `until`; the oldest first. Both have a time zone.

        Raises UnavailableError, and ControlFileError for an entry or a mark that cannot be read.
        """
        day = timedelta(days=1)
        paths = entries(self.prefix, (since - LONGEST).astimezone(UTC).date(), (until + day).astimezone(UTC).date())
        for gone in self._entries.keys() - set(paths):  # of days that are over
            del self._entries[gone]
            self._ended.pop(gone, None)
        unread = [path for path in paths if path not in self._ended or self._ended[path].end >= since]
        with ThreadPoolExecutor(THREADS) as pool:
            held = dict(zip(unread, pool.map(lambda path: self._held(path, until), unread), strict=True))
        within = [
            path for path, attempt in held.items() if attempt.end >= since and self._entries[path].started < until
        ]
        within.sort(
            key=lambda path: (self._entries[path].started, self._entries[path].path, self._entries[path].attempt)
        )
        moved = _moved([self._entries[path] for path in within])
        return [
            Used(
                entry=self._entries[path],
                hours=held[path].hours(since, until),
                moved_bytes=moved.pop(self._entries[path].path, 0),
                ended=held[path].ended,
            )
            for path in within
        ]

    def _held(self, path: str, now: datetime) -> Held:
        if path not in self._entries:
            self._entries[path] = read_entry(path)
        if path in self._ended:
            return self._ended[path]
        held = held_by(self._entries[path], now)
        if held.ended:
            self._ended[path] = held
        return held


def used(prefix: str, since: datetime, until: datetime) -> list[Used]:
    """The usage of each attempt below the prefix from `since` to `until`: see `UsageReader`."""
    return UsageReader(prefix=prefix).used(since, until)


def device_hours(attempts: Iterable[Used]) -> dict[str, float]:
    """Pool -> device hours, of the pools that were used."""
    hours: dict[str, float] = {}
    for attempt in attempts:
        if attempt.entry.pool is not None:
            hours[attempt.entry.pool] = hours.get(attempt.entry.pool, 0.0) + attempt.hours
    return hours


def _moved(attempts: Sequence[Entry]) -> dict[str, int]:
    """Path of an output -> the bytes that these attempts have moved since the first of them began; the oldest first.

    A ledger counts the bytes of an output, whichever attempt moved them.
    """
    before: dict[str, int] = {}
    for attempt in attempts:
        if attempt.moved_bytes is not None:
            before.setdefault(attempt.path, attempt.moved_bytes)
    with ThreadPoolExecutor(THREADS) as pool:
        after = dict(zip(before, pool.map(moved_bytes, before), strict=True))
    return {path: max(0, after[path] - before[path]) for path in before}


@dataclass(frozen=True, kw_only=True)
class Span:
    start: datetime
    end: datetime
    devices: int
    """GPUs, or chips of TPUs."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """The devices that an attempt has held."""

    spans: Sequence[Span]
    end: datetime
    """End of the attempt, or its last sign."""
    ended: bool

    def hours(self, since: datetime, until: datetime) -> float:
        """Device hours in a window of time."""
        return sum(
            span.devices * max(timedelta(0), min(until, span.end) - max(since, span.start)) / HOUR
            for span in self.spans
        )


def held_by(entry: Entry, now: datetime) -> Held:
    """The devices that it has held until now. Raises UnavailableError, and ControlFileError for a damaged mark."""
    try:
        mark = read_attempt(entry.path, entry.attempt)
    except FileNotFoundError:
        mark = {}  # somebody has removed the output
    finished = _time_in(entry, "finished_at", mark.get("finished_at"))
    end = max(entry.started, finished) if finished is not None else _last_sign(entry, now)
    return Held(spans=_spans(entry, mark, end), end=end, ended=finished is not None)


def _spans(entry: Entry, mark: Mapping[str, Any], end: datetime) -> list[Span]:
    tries = [run for run in mark.get("tries") or () if run.get("devices") and run.get("attempt") == entry.attempt]
    starts = [_time_in(entry, "started_at of a try", run.get("started_at")) or entry.started for run in tries]
    if not tries:
        return [Span(start=entry.started, end=end, devices=entry.devices)]
    spans = []
    if (tries[0].get("number") or 1) > 1:  # the mark has only the last tries
        spans.append(Span(start=entry.started, end=starts[0], devices=entry.devices))
    for run, start in zip(tries, starts, strict=True):
        ran_s = run.get("ran_s")
        until = end if ran_s is None else start + timedelta(seconds=ran_s)
        spans.append(Span(start=start, end=until, devices=run["devices"]))
    return spans


def _time_in(entry: Entry, name: str, text: Any) -> datetime | None:
    """A time of the mark; None if it has none. Raises UsageError if it is no time."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            raise ValueError("it has no time zone")
        return time
    except (TypeError, ValueError):
        raise UsageError(
            f"The mark of attempt {entry.attempt} at {entry.path!r} has {name}={text!r}, expected a time such as "
            "'2026-01-31T12:00:00+00:00'. Look at the file; move it aside if it is damaged."
        ) from None


def _last_sign(entry: Entry, now: datetime) -> datetime:
    """The last sign of an attempt that has recorded no end."""
    holder = lease.holder_of(entry.path)
    if holder is not None and holder.attempt == entry.attempt:
        return now if holder.ttl_s is None else _heartbeat(holder.heartbeat) or entry.started
    return max(entry.started, changed_at(log_path(entry.path, entry.attempt)) or entry.started)


def _heartbeat(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None  # Marin's lease has none
