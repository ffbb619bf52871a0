"""The usage in a time: device hours of the attempts that held devices in it, and bytes from other regions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from marin_resources.storage.transfer.budget import moved_bytes
from marin_resources.storage.usage.device_usage import Held, held_by
from marin_resources.storage.usage.entries import THREADS, Entry, entries, read_entry

LONGEST = timedelta(days=60)
"""An attempt that began longer before is not looked for."""


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
