"""A lab whose attempts at outputs cost device hours and transfers: for tests of what was used."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from marin_resources.hardware.resources import Resources
from marin_resources.storage.control import control
from marin_resources.storage.output.attempts import add_facts, begin_attempt, end_attempt, log_path
from marin_resources.storage.paths import is_local, join
from marin_resources.storage.transfer.transfer_log import Moved
from marin_resources.storage.transfer.transfer_log_files import LedgerInFile
from marin_resources.storage.usage.entries import enter, entry_of
from marin_resources.storage.usage.usage import device_hours, used

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Lab:
    """Attempts at outputs below one prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def begin(
        self, name: str, resources: Resources, started: datetime, attempt: int = 1, moved_bytes: int | None = None
    ) -> str:
        """The path of the output."""
        path = join(self.prefix, name)
        entry = entry_of(path, name, attempt, resources, started=started, run_id="r1", moved_bytes=moved_bytes)
        if entry is not None:
            enter(self.prefix, entry)
        begin_attempt(path, attempt, {"started_at": started.isoformat()})
        return path

    def end(self, path: str, at: datetime, attempt: int = 1, outcome: str = "success") -> None:
        end_attempt(path, attempt, {"outcome": outcome, "finished_at": at.isoformat()})

    def ran(self, name: str, resources: Resources, started: datetime, hours: float, attempt: int = 1) -> str:
        path = self.begin(name, resources, started, attempt)
        self.end(path, started + hours * HOUR, attempt)
        return path

    def tries(self, path: str, *tries: tuple[int, datetime, float | None], attempt: int = 1, first: int = 1) -> None:
        """The mark of an attempt on slices: devices, start and hours of each try; None for one that runs."""
        found = [
            {
                "attempt": attempt,
                "number": first + place,
                "devices": devices,
                "started_at": started.isoformat(),
                "ran_s": None if hours is None else hours * 3600,
            }
            for place, (devices, started, hours) in enumerate(tries)
        ]
        add_facts(path, attempt, {"tries": found})

    def log(self, path: str, at: datetime, attempt: int = 1) -> None:
        """The attempt's log, written last at this time."""
        log = log_path(path, attempt)
        control.put(log, b"step 100\n")
        if is_local(log):
            os.utime(log, (at.timestamp(), at.timestamp()))

    def hours(self, since: datetime, until: datetime) -> dict[str, float]:
        found = device_hours(used(self.prefix, since, until))
        return {pool: round(hours, 6) for pool, hours in found.items()}


def move(path: str, size_bytes: int) -> None:
    moved = Moved(path=f"crawl/{size_bytes}", origin="far", to="here", bytes=size_bytes, dollars=0.0)
    LedgerInFile(path).change(lambda ledger: ledger.settle("none", [moved], done=True))
