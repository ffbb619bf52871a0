"""The files of an instance on SQLite: their list, and a copy of each that is as of one moment.

history/runs/index.db     what Dagster knows of assets: events of all runs
history/runs/<run>.db     the events of one run
history/runs.db           runs, backfills, keys of dynamic partitions, heartbeats
schedules/schedules.db    sensors, schedules, their ticks
storage/                  what runs have printed
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

DATABASES = ("history/runs/index.db", "history/runs.db", "schedules/schedules.db")
LOGS = "storage"
BUSY_TIMEOUT_S = 60.0


def database_files(home: Path) -> Iterator[str]:
    """Their names, in the order in which they are copied: what names a run is copied before the run.

    So a copy that is made while Dagster writes has no asset whose run it does not have.
    """
    index, runs, schedules = DATABASES
    logs = sorted(path.name for path in (home / "history/runs").glob("*.db"))
    for name in (index, *(f"history/runs/{log}" for log in logs if log != "index.db"), runs, schedules):
        if (home / name).is_file():
            yield name


def log_files(home: Path) -> Iterator[str]:
    for path in sorted((home / LOGS).rglob("*")):
        if path.is_file():
            yield str(path.relative_to(home))


def copy_database(source: Path, target: Path) -> None:
    """Copy a database that others write to, as of one moment, by SQLite's own means."""
    with (
        closing(sqlite3.connect(_read_only(source), uri=True, timeout=BUSY_TIMEOUT_S)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)


def damage_of(path: Path) -> str:
    """The damage that SQLite's quick check finds; empty if the database is sound."""
    try:
        with closing(sqlite3.connect(_read_only(path), uri=True)) as database:
            answer = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if answer == "ok" else answer


def _read_only(path: Path) -> str:
    return f"file:{quote(str(path))}?mode=ro"
