"""Dagster's home: its dagster.yaml, its databases (SQLite or Postgres), its launcher, and whether a daemon runs.

Dagster's own errors of these name neither the variable nor what to do.
"""

from __future__ import annotations

import difflib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from marin_resources.configuration.settings import dagster_home, ensure_dagster_home
from marin_resources.doctor.finding import Finding, ok, warning, wrong
from marin_resources.doctor.folders import why_unusable
from marin_resources.doctor.postgres import addresses_in, why_no_connection
from marin_resources.storage.manifest.bytes_progress import readable_bytes

if TYPE_CHECKING:
    import dagster as dg

SUBJECT = "dagster"
DATABASES = ("history/runs/index.db", "history/runs.db", "schedules/schedules.db")
PARTS = ("run_launcher", "run_coordinator", "compute_log_manager", "scheduler")
NEEDED_BYTES = 2 * 10**6
"""SQLite needs room for a journal with each write."""
NETWORK_DISKS = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "fuse.gcsfuse", "9p", "lustre", "ceph")
"""File systems over a network, as the kernel names them. SQLite's locks are not safe on them."""


NAME = "dagster.yaml"
UNKNOWN = re.compile(r'unexpected config entry "(\w+)" at (?:the root|path (\S+?))\.')
INVALID = re.compile(r'at path (\S+?)\. Value "(.*?)" of type .* is not valid for expected type "(\w+)"')


def look() -> Iterator[Finding]:
    """Raises SettingError if the home cannot be written."""
    given = dagster_home()
    if not os.path.exists(given):
        why = why_unusable(given)
        if why:
            yield wrong(SUBJECT, f"DAGSTER_HOME is {given!r}, and {why}. Set it to a folder of yours.")
        else:
            yield ok(SUBJECT, f"{given} does not exist yet. The first command creates it.")
        return
    free_bytes = _free_bytes(given)
    if free_bytes < NEEDED_BYTES:
        free = readable_bytes(free_bytes)
        yield wrong(SUBJECT, f"{given} is on a full disk, with {free} free: no run is recorded. Make room there.")
        return
    home = ensure_dagster_home()
    findings = [*_damaged_databases(home), *(wrong(SUBJECT, sentence) for sentence in mistakes_in(home))]
    yield from findings
    if not findings:
        yield from _of_instance(home)


def _free_bytes(folder: str) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _damaged_databases(home: str) -> Iterator[Finding]:
    """SQLite's own check of each of Dagster's databases; a run's log is not read, there may be thousands."""
    for path in (Path(home, name) for name in DATABASES):
        if path.exists() and (why := damage_of(path)):
            yield wrong(
                SUBJECT,
                f"The database '{path}' is damaged ({why}). Put your back-up of it in its place, or "
                "move it away, and let `marin sync` show the complete outputs again.",
            )


def damage_of(path: Path) -> str:
    """The damage that SQLite's quick check finds; empty if the database is sound."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            answer = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if answer == "ok" else answer


def _of_instance(home: str) -> Iterator[Finding]:
    # late, for its weight: Dagster takes a second
    from marin_resources.dagster_fixes.databases import open_instance

    try:
        opened = open_instance()
    except Exception as error:  # Dagster's, YAML's, SQLAlchemy's and psycopg's have no base in common
        yield wrong(SUBJECT, sentence_of(error, home))
        return
    with opened as instance:
        unloaded = list(_that_cannot_be_loaded(instance, home))
        if unloaded:
            yield from unloaded
            return
        yield from _old_tables(instance)
        yield from _slow_or_unsafe(instance, home)
        yield from _daemon(instance)
        yield ok(SUBJECT, f"{home}: {instance.get_runs_count()} runs in {_database(instance)}")


def _that_cannot_be_loaded(instance: dg.DagsterInstance, home: str) -> Iterator[Finding]:
    """Parts of the instance that Dagster loads when they are first used: then a run or the daemon fails."""
    for part in PARTS:
        try:
            getattr(instance, part)
        except Exception as error:  # whatever the module of the class raises
            why = " ".join(str(error).split()).removeprefix("Failure condition: ").removesuffix(".")
            yield wrong(
                SUBJECT,
                f"The {part} of {home}/dagster.yaml cannot be loaded ({why}). Correct its module, class and config.",
            )


def _old_tables(instance: dg.DagsterInstance) -> Iterator[Finding]:
    storages = {"runs": instance.run_storage, "events": instance.event_log_storage, "ticks": instance.schedule_storage}
    for database, storage in storages.items():
        current, newest = (storage.alembic_version() if storage is not None else None) or (None, None)
        if current == newest:
            continue
        if current in _known_revisions():
            do = "an older release of Dagster (revision {}). Stop it, back it up, and run: dagster instance migrate"
        else:
            do = "a newer release of Dagster (revision {}). Install that release."
        yield wrong(SUBJECT, f"The tables of {database} are those of {do.format(current)}")


def _known_revisions() -> set[str]:
    """All revisions that the installed Dagster has ever had. A newer release knows more."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    from marin_resources.dagster_fixes.databases import MIGRATIONS

    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    return {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}


def _slow_or_unsafe(instance: dg.DagsterInstance, home: str) -> Iterator[Finding]:
    # late, for its weight
    from dagster import DefaultRunLauncher

    if _database(instance) == "SQLite" and (kind := disk_type(home)) in NETWORK_DISKS:
        yield wrong(
            SUBJECT,
            f"{home} is on a network disk ({kind}), where SQLite's locks do not hold. Use a local folder.",
        )
    if type(instance.run_launcher) is DefaultRunLauncher:
        yield warning(
            SUBJECT,
            "A run whose process is killed stays STARTED for ever: dagster.yaml names no run_launcher. Take the one "
            "of the project's .dagster/dagster.yaml, LocalRunLauncher.",
        )
    if not instance.run_monitoring_enabled:
        yield warning(SUBJECT, "Nobody looks whether runs are alive. Enable run_monitoring in dagster.yaml.")


def disk_type(folder: str) -> str:
    """The type of the file system that a folder is on, as the kernel names it; empty if it is not known."""
    import psutil

    mounts = [mount for mount in psutil.disk_partitions(all=True) if _is_below(folder, mount.mountpoint)]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else ""


def _is_below(folder: str, mountpoint: str) -> bool:
    return folder == mountpoint or folder.startswith(f"{mountpoint.rstrip('/')}/")


def _daemon(instance: dg.DagsterInstance) -> Iterator[Finding]:
    from marin_resources.orchestrator.daemon_health import is_recent  # late, for its weight

    heartbeats, required = instance.get_daemon_heartbeats(), instance.get_required_daemon_types()
    healthy = {name: heartbeats[name] for name in required if name in heartbeats and is_recent(heartbeats[name])}
    silent = sorted(set(required) - set(healthy))
    if not healthy:
        yield _no_daemon(instance)
    elif silent:
        yield wrong(SUBJECT, f"These parts of the daemon are silent: {', '.join(silent)}. Read its log; restart it.")
    for name, heartbeat in sorted(healthy.items()):
        for error in heartbeat.errors or []:
            yield warning(SUBJECT, f"{name} met an error in its last round: {error.message}")


def _no_daemon(instance: dg.DagsterInstance) -> Finding:
    # late, for its weight
    from dagster import DagsterRunStatus, RunsFilter

    queued = instance.get_runs_count(RunsFilter(statuses=[DagsterRunStatus.QUEUED]))
    backfills = sum(backfill.status.value == "REQUESTED" for backfill in instance.get_backfills())
    start = "Start it: marin dev, or dagster-daemon run."
    if queued or backfills:
        return wrong(
            SUBJECT, f"{queued} queued runs and {backfills} backfills wait for a daemon, and none runs. {start}"
        )
    if instance.get_daemon_heartbeats():
        return warning(SUBJECT, f"The daemon has stopped, so no sensor and no schedule looks at anything. {start}")
    return ok(SUBJECT, "no daemon, which sensors, schedules and backfills need; scripts and `marin materialize` do not")


def _database(instance: dg.DagsterInstance) -> str:
    storage: Any = instance.run_storage
    return "SQLite" if "Sqlite" in type(storage).__name__ or "LockedInit" in type(storage).__name__ else "Postgres"


def mistakes_in(home: str) -> Iterator[str]:
    """A sentence for each mistake that is found without Dagster. Connects to the database that is named."""
    path = os.path.join(home, NAME)
    settings: Any = {}
    if os.path.exists(path):
        try:
            settings = _read(path)
        except (OSError, ValueError) as error:
            yield f"{path!r} cannot be read ({error}). Correct the file."
            return
    if not isinstance(settings, Mapping):
        yield f"{path!r} holds a {type(settings).__name__}, expected a table of settings. Correct the file."
        return
    for name in dict.fromkeys(_variables_in(settings)):
        if not os.environ.get(name):
            yield f"{path!r} reads the variable {name}, which is not set. Set it, in the environment of all services."
    for address in addresses_in(settings, os.environ, path):
        if why := why_no_connection(address):
            yield why


def sentence_of(error: Exception, home: str) -> str:
    """Dagster's error about the settings, short."""
    path, text = os.path.join(home, NAME), " ".join(str(error).split())
    if unknown := UNKNOWN.search(text):
        near = difflib.get_close_matches(unknown[1], _known_keys(), n=1) if unknown[2] is None else []
        advice = f"Did you mean {near[0]!r}?" if near else "Remove it, or correct its name."
        return f"{path!r} has the key {unknown[1]!r}, which Dagster does not know. {advice}"
    if invalid := INVALID.search(text):
        place = invalid[1].removeprefix("root:").replace(":", ".")
        return f"{path!r} has {place} = {invalid[2]!r}, expected a value of the type {invalid[3]}."
    shown = text.partition(' Expected: "{')[0].removesuffix(".")
    return f"The instance at {home} cannot be opened ({type(error).__name__}: {shown}). Correct {path!r}."


def _read(path: str) -> Any:
    """Raises ValueError with one line."""
    import yaml

    with open(path, encoding="utf-8") as file:
        try:
            return yaml.safe_load(file) or {}
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
            raise ValueError(f"{where}{error.problem or error.context}") from None
        except yaml.YAMLError as error:  # a character that no YAML may have
            raise ValueError(" ".join(str(error).split())) from None


def _variables_in(settings: Any) -> Iterator[str]:
    """The names in `{env: NAME}`, at any depth."""
    if isinstance(settings, Mapping):
        if list(settings) == ["env"] and isinstance(settings["env"], str):
            yield settings["env"]
        settings = settings.values()
    elif not isinstance(settings, list):
        return
    for value in settings:
        yield from _variables_in(value)


def _known_keys() -> list[str]:
    from marin_resources.dagster_fixes.databases import instance_keys  # late, for its weight

    return instance_keys()
