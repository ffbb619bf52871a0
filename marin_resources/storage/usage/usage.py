"""What a time has cost: device hours of the attempts that held devices in it, and bytes from other regions.

An attempt costs from its start to its end. One that is under way costs until now, in a bucket until the last renewal of
its lease. One whose worker has died costs until the last sign of it: the renewal, or the last change of its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from marin_resources.storage.files import changed_at
from marin_resources.storage.lease import lease
from marin_resources.storage.output.attempts import log_path, read_attempt
from marin_resources.storage.transfer.budget import moved_bytes
from marin_resources.storage.usage.entries import THREADS, Entry, UsageError, entries, read_entry

LONGEST = timedelta(days=60)
"""An attempt that began longer before is not looked for."""


@dataclass(frozen=True, kw_only=True)
class Used:
    """What an attempt has cost in the time that was asked for."""

    entry: Entry
    hours: float
    """Device hours: of one GPU, or of one chip of a TPU."""
    moved_bytes: int
    """From other regions, of the attempts at this output in the time; only the first of them has it."""
    ended: bool


@dataclass(kw_only=True)
class UsageReader:
    """Reads what was used below a prefix. It remembers attempts that have ended: ask one reader again and again."""

    prefix: str
    _entries: dict[str, Entry] = field(default_factory=dict)
    _ended: dict[str, datetime] = field(default_factory=dict)
    """Path of an entry -> when its attempt ended."""

    def used(self, since: datetime, until: datetime) -> list[Used]:
        """What each attempt has cost from `since` to `until`; the oldest first. Both have a time zone.

        Raises UnavailableError, and ControlFileError for an entry or a mark that cannot be read.
        """
        day = timedelta(days=1)
        found = entries(self.prefix, (since - LONGEST).astimezone(UTC).date(), (until + day).astimezone(UTC).date())
        for gone in self._entries.keys() - set(found):  # of days that are over
            del self._entries[gone]
            self._ended.pop(gone, None)
        wanted = [path for path in found if path not in self._ended or self._ended[path] >= since]
        with ThreadPoolExecutor(THREADS) as pool:
            ends = dict(zip(wanted, pool.map(lambda path: self._end(path, until), wanted), strict=True))
        within = [path for path, (end, _) in ends.items() if end >= since and self._entries[path].started < until]
        within.sort(
            key=lambda path: (self._entries[path].started, self._entries[path].path, self._entries[path].attempt)
        )
        moved = _moved([self._entries[path] for path in within])
        return [
            Used(
                entry=self._entries[path],
                hours=_hours(self._entries[path], since, min(until, ends[path][0])),
                moved_bytes=moved.pop(self._entries[path].path, 0),
                ended=ends[path][1],
            )
            for path in within
        ]

    def _end(self, path: str, now: datetime) -> tuple[datetime, bool]:
        """When the attempt ended, or was last seen, and whether it has ended."""
        if path not in self._entries:
            self._entries[path] = read_entry(path)
        if path in self._ended:
            return self._ended[path], True
        entry = self._entries[path]
        if (finished := _finished(entry)) is not None:
            self._ended[path] = finished
            return finished, True
        return _last_seen(entry, now), False


def used(prefix: str, since: datetime, until: datetime) -> list[Used]:
    """What each attempt below the prefix has cost from `since` to `until`: see `UsageReader`."""
    return UsageReader(prefix=prefix).used(since, until)


def device_hours(some: Iterable[Used]) -> dict[str, float]:
    """Pool -> device hours, of the pools that were used."""
    hours: dict[str, float] = {}
    for each in some:
        if each.entry.pool is not None:
            hours[each.entry.pool] = hours.get(each.entry.pool, 0.0) + each.hours
    return hours


def _finished(entry: Entry) -> datetime | None:
    """The end in the mark of the attempt; None if it has none."""
    try:
        text = read_attempt(entry.path, entry.attempt).get("finished_at")
    except FileNotFoundError:
        return None  # somebody has removed the output
    if text is None:
        return None
    try:
        return max(entry.started, datetime.fromisoformat(text))
    except (TypeError, ValueError):
        raise UsageError(
            f"The mark of attempt {entry.attempt} at {entry.path!r} has finished_at={text!r}, expected a time such as "
            "'2026-01-31T12:00:00+00:00'. Look at the file; move it aside if it is damaged."
        ) from None


def _last_seen(entry: Entry, now: datetime) -> datetime:
    """The last sign of an attempt that has recorded no end."""
    holder = lease.holder_of(entry.path)
    if holder is not None and holder.attempt == entry.attempt:
        return now if holder.ttl_s is None else _time(holder.heartbeat) or entry.started
    return max(entry.started, changed_at(log_path(entry.path, entry.attempt)) or entry.started)


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None  # Marin's lease has none


def _hours(entry: Entry, since: datetime, end: datetime) -> float:
    held = end - max(since, entry.started)
    return entry.devices * max(timedelta(0), held) / timedelta(hours=1)


def _moved(some: Sequence[Entry]) -> dict[str, int]:
    """Path of an output -> the bytes that these attempts have moved since the first of them began; the oldest first.

    A ledger counts the bytes of an output, whichever attempt moved them.
    """
    before: dict[str, int] = {}
    for entry in some:
        if entry.moved_bytes is not None:
            before.setdefault(entry.path, entry.moved_bytes)
    with ThreadPoolExecutor(THREADS) as pool:
        after = dict(zip(before, pool.map(moved_bytes, before), strict=True))
    return {path: max(0, after[path] - before[path]) for path in before}
