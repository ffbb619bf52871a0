"""Dagster's SQLite databases: each is created once and whole, also by processes that start at the same moment.

As published (1.13.27) Dagster creates the tables of a database one after the other, without a lock. Of 2 to 8 processes
that open an empty home, most fail ("table already exists", "database is locked"), and two stamps of the version leave a
database that no process can open again. Here one process at a time, under a lock of the kernel that its death releases,
creates a database in a folder beside its place and links it there when it is complete. A database that was left
incomplete, by a kill or by Dagster's own code, is created again; one that holds runs or events is never removed.

Dagster's code also reads all its migrations whenever it opens a database. That takes 30 ms, and alembic keeps a
kilobyte for ever, as it registers a function for the exit of the process. Each tick of a sensor opens three. So a
database that is complete is opened as it is.

    open_instance()                          for scripts and `marin`, with the storages of any dagster.yaml
    LockedInitRunStorage and ...Schedule... for a dagster.yaml, so that `dagster dev` and the daemon lock too

See dagster-io/dagster#27390, two versions of the tables. Without this, an empty home may be created broken.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dagster as dg
from dagster import Field, StringSource
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from sqlalchemy import Connection, Engine, NullPool, create_engine

from marin_resources.dagster_fixes.gc_freeze import freeze_startup_objects

MIGRATIONS = "dagster:_core/storage/alembic"
"""Dagster's migrations of its tables, as alembic finds them."""
BUSY_TIMEOUT_S = 30
"""Time for which a connection waits for another one's lock, as in Dagster's code."""
QUIET_S = 10
"""An incomplete database that nobody has written to for this time was left behind. Dagster's own code, which takes no
lock, creates one in 1 to 3 s."""
BOOKKEEPING = {"alembic_version", "secondary_indexes", "instance_info", "sqlite_sequence", "daemon_heartbeats", "kvs"}
"""Tables whose rows describe the database, or processes of the moment."""


class State(enum.Enum):
    ABSENT = enum.auto()
    INCOMPLETE = enum.auto()
    """A database whose creation has not ended. It holds nothing yet."""
    STAMPED_TWICE = enum.auto()
    """It holds runs or events and two versions of its tables, so Dagster refuses to open it."""
    USABLE = enum.auto()


class _PooledEngine:
    """Connects by one engine. Dagster's code creates one for each connection: in a daemon, two in a second for ever."""

    _conn_string: str

    @cached_property
    def _pooled_engine(self) -> Engine:
        return create_engine(self._conn_string, poolclass=NullPool)

    @contextlib.contextmanager
    def connect(self) -> Iterator[Connection]:
        with self._pooled_engine.connect() as connection, connection.begin():
            yield connection


class LockedInitRunStorage(_PooledEngine, SqliteRunStorage):
    """`run_storage` of a dagster.yaml. The default of `base_dir` is Dagster's: DAGSTER_HOME/history."""

    @classmethod
    def config_type(cls) -> Any:
        return OPTIONAL_BASE_DIR

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> LockedInitRunStorage:
        freeze_startup_objects()
        base_dir = config_value.get("base_dir") or os.path.join(os.environ["DAGSTER_HOME"], "history")
        ensure_database("SqliteRunStorage", base_dir)
        if is_complete(Path(base_dir, "runs.db"), "instance_info"):
            return cls(_url(base_dir, "runs.db"), inst_data)
        return cls.from_local(base_dir, inst_data)


class LockedInitScheduleStorage(_PooledEngine, SqliteScheduleStorage):
    """`schedule_storage` of a dagster.yaml. The default of `base_dir` is Dagster's: DAGSTER_HOME/schedules."""

    @classmethod
    def config_type(cls) -> Any:
        return OPTIONAL_BASE_DIR

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> LockedInitScheduleStorage:
        base_dir = config_value.get("base_dir") or os.path.join(os.environ["DAGSTER_HOME"], "schedules")
        ensure_database("SqliteScheduleStorage", base_dir)
        if is_complete(Path(base_dir, "schedules.db")):
            return cls(_url(base_dir, "schedules.db"), inst_data)
        return cls.from_local(base_dir, inst_data)  # type: ignore[return-value]


def _url(base_dir: str, file: str) -> str:
    return f"sqlite:///{os.path.abspath(base_dir)}/{file}"


def open_instance() -> dg.DagsterInstance:
    """The instance at DAGSTER_HOME. Its SQLite databases exist, whichever classes its dagster.yaml names."""
    ref = instance_ref(os.environ["DAGSTER_HOME"])
    for data in (ref.run_storage_data, ref.event_storage_data, ref.schedule_storage_data):
        if data is not None and data.class_name in DATABASES and isinstance(data.config_dict.get("base_dir"), str):
            ensure_database(data.class_name, data.config_dict["base_dir"])
    return dg.DagsterInstance.get()


def instance_ref(home: str) -> InstanceRef:
    """The modules, classes and configs of the dagster.yaml in a home, before one of them is loaded."""
    return InstanceRef.from_dir(home)


def instance_keys() -> list[str]:
    """The keys that a dagster.yaml may have."""
    from dagster._core.instance.config import dagster_instance_config_schema

    return sorted(dagster_instance_config_schema())


def ensure_database(storage: str, base_dir: str) -> None:
    """Create the database of Dagster's class `storage` in `base_dir`, unless it exists."""
    name, create = DATABASES[storage]
    database = Path(base_dir, name)
    if state_of(database) is State.USABLE:
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    with _locked(database.with_name(f".{name}.lock")):
        while (state := _settled(database)) is not State.USABLE:
            if state is State.STAMPED_TWICE:
                _keep_one_stamp(database)
                continue
            if state is State.INCOMPLETE:
                _remove(database)
            _create(database, create)


def state_of(database: Path) -> State:
    """The state of a database. A file that SQLite cannot read is USABLE: opening it fails with Dagster's error."""
    if not database.exists():
        return State.ABSENT
    try:
        with contextlib.closing(_connect(database)) as connection:
            tables = _tables(connection)
            stamps = _rows(connection, tables, "alembic_version")
            if stamps == 1:  # Dagster stamps the version when all tables exist
                return State.USABLE
            if not any(_rows(connection, tables, table) for table in tables - BOOKKEEPING):
                return State.INCOMPLETE
            return State.STAMPED_TWICE if stamps > 1 else State.USABLE
    except sqlite3.DatabaseError:
        return State.USABLE if database.exists() else State.ABSENT


def is_complete(database: Path, *needed: str) -> bool:
    """Whether Dagster's code would create nothing in it: it has a version, which is stamped last, and these tables."""
    try:
        with contextlib.closing(_connect(database)) as connection:
            tables = _tables(connection)
            return tables.issuperset(needed) and _rows(connection, tables, "alembic_version") == 1
    except sqlite3.DatabaseError:
        return False


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _settled(database: Path) -> State:
    """The state, once no process without the lock creates the database any more."""
    while (state := state_of(database)) is State.INCOMPLETE and time.time() - _written_s(database) < QUIET_S:
        time.sleep(0.1)
    return state


def _written_s(database: Path) -> float:
    """Time of the last write to the database, in seconds since 1970; 0 if it is gone."""
    return max((file.stat().st_mtime for file in _files(database) if file.exists()), default=0.0)


def _create(database: Path, create: Callable[[str], object]) -> None:
    prefix = f".{database.name}.new-"
    for abandoned in database.parent.glob(f"{prefix}*"):  # by a process that was killed
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=database.parent) as folder:
        create(folder)
        with contextlib.suppress(FileExistsError):  # a process without the lock was faster
            os.link(Path(folder, database.name), database)


def _keep_one_stamp(database: Path) -> None:
    """Stamp the tables with Dagster's current version: each process that stamped them had created all of these."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    head = ScriptDirectory.from_config(config).get_current_head()
    with contextlib.closing(_connect(database)) as connection, connection:
        connection.execute("DELETE FROM alembic_version")
        connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (head,))


def _remove(database: Path) -> None:
    for file in _files(database):
        file.unlink(missing_ok=True)


def _files(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in ("-journal", "-wal", "-shm", "")]


def _connect(database: Path) -> sqlite3.Connection:
    """A connection that never creates the file."""
    return sqlite3.connect(f"file:{quote(str(database))}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_S)


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _rows(connection: sqlite3.Connection, tables: set[str], table: str) -> int:
    """The number of rows of a table, up to 2; 0 if the table is missing."""
    if table not in tables:
        return 0
    return len(connection.execute(f'SELECT 1 FROM "{table}" LIMIT 2').fetchall())


OPTIONAL_BASE_DIR = {"base_dir": Field(StringSource, is_required=False)}
DATABASES: dict[str, tuple[str, Callable[[str], object]]] = {
    "SqliteRunStorage": ("runs.db", SqliteRunStorage.from_local),
    "SqliteEventLogStorage": ("index.db", SqliteEventLogStorage),
    "SqliteScheduleStorage": ("schedules.db", SqliteScheduleStorage.from_local),
}
"""Dagster's class -> the file in its base_dir, and the function that creates it in a folder."""
