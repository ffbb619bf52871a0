"""An instance on Postgres: its tables by Postgres's own programs, pg_dump and pg_restore.

The password travels in the environment of the program, never among its arguments, which other users can see.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marin_resources.instance.archive import BackUpError

if TYPE_CHECKING:
    import dagster as dg
    from sqlalchemy.engine import URL

DUMP = "postgres.dump"
MODULES = ("dagster_postgres", "marin_resources.dagster_fixes.postgres")
"""Modules of the storages that a dagster.yaml may name."""


def url_of(instance: dg.DagsterInstance) -> URL | None:
    """The database of an instance on Postgres; None for another kind. Raises BackUpError for several databases."""
    from sqlalchemy.engine import make_url

    storages: tuple[Any, ...] = (instance.run_storage, instance.event_log_storage, instance.schedule_storage)
    urls = {url for storage in storages if (url := getattr(storage, "postgres_url", None))}
    if len(urls) > 1:
        raise BackUpError(f"The instance has {len(urls)} Postgres databases, expected one (`storage: postgres:`).")
    return make_url(urls.pop()) if urls else None


def url_of_home(home: Path) -> URL | None:
    """The database URL of the instance that a home's dagster.yaml names. One on SQLite is not opened: that
    creates it."""
    from marin_resources.dagster_fixes.databases import instance_ref, open_instance

    if not (home / "dagster.yaml").is_file():
        return None
    data = instance_ref(str(home)).run_storage_data
    if data is None or not data.module_name.startswith(MODULES):
        return None
    with open_instance() as instance:
        return url_of(instance)


def dump(url: URL, target: Path) -> None:
    """Write all tables as of one moment. Raises BackUpError."""
    _run("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges", "--file", str(target))


def load(url: URL, source: Path) -> None:
    """Replace the tables, in one transaction: all of them or none. Raises BackUpError."""
    options = ("--clean", "--if-exists", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
    _run("pg_restore", url, *options, str(source))


def count_users(url: URL) -> int:
    """The number of other connections that the database has."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return int(_run("psql", url, "--tuples-only", "--no-align", "--command", query).strip())


def _run(program: str, url: URL, *arguments: str) -> str:
    executable = shutil.which(program)
    if executable is None:
        raise BackUpError(
            f"{program} is not installed here. Install Postgres's clients: apt install postgresql-client."
        )
    env = {**os.environ, "PGPASSWORD": str(url.password or ""), "PGCONNECT_TIMEOUT": "10"}
    parts = {"host": url.host, "port": url.port, "username": url.username, "dbname": url.database}
    named = [f"--{name}={value}" for name, value in parts.items() if value is not None]
    done = subprocess.run([executable, *named, *arguments], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise BackUpError(f"{program} failed: {' '.join(done.stderr.split())[:500]}")
    return done.stdout
