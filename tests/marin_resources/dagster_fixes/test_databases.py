"""The databases of a Dagster home: created once, whole, and again after a process was killed at it."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
import quick_databases
from alembic.script import ScriptDirectory
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from dagster._core.test_utils import create_run_for_test

from marin_resources.configuration.settings import project_root
from marin_resources.dagster_fixes import databases
from marin_resources.dagster_fixes.databases import State, ensure_database, open_instance, state_of

LAST_STAMP_OF_OLD = "5771160a95ad"


@pytest.fixture
def runs(dagster_home: Path) -> Path:
    """The database of runs of a home that is not open."""
    return dagster_home / "history/runs.db"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the storages of this project's dagster.yaml."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(project_root() / ".dagster/dagster.yaml", home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return home


def edit(database: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def left_behind(database: Path) -> None:
    """Nobody has written to the database for long."""
    os.utime(database, (1, 1))


def half_created(database: Path) -> None:
    edit(database, "DROP TABLE alembic_version", "DROP TABLE run_tags")
    left_behind(database)


def just_begun(database: Path) -> None:
    database.write_bytes(b"")
    left_behind(database)


def stamped_twice(database: Path) -> None:
    edit(database, f"INSERT INTO alembic_version VALUES ('{LAST_STAMP_OF_OLD}')")
    left_behind(database)


@pytest.mark.parametrize("damage", [half_created, just_begun, stamped_twice])
def test_a_home_whose_creation_was_killed_works_again(runs: Path, damage: Callable[[Path], None]) -> None:
    damage(runs)
    assert state_of(runs) is State.INCOMPLETE
    with open_instance() as instance:
        assert instance.get_runs_count() == 0
        assert instance.add_run(dg.DagsterRun(job_name="work", tags={"a": "b"}))
        assert instance.get_run_tags(["a"]) == [("a", {"b"})]
    assert state_of(runs) is State.USABLE


def test_runs_outlive_two_stamps_of_the_version(runs: Path) -> None:
    with open_instance() as instance:
        instance.add_run(dg.DagsterRun(job_name="work"))
    stamped_twice(runs)
    with open_instance() as instance:
        assert [run.job_name for run in instance.get_runs()] == ["work"]


def test_what_a_killed_process_had_built_aside_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".schedules.db.new-x"
    left.mkdir()
    (left / "schedules.db").write_bytes(b"half")
    ensure_database("SqliteScheduleStorage", str(tmp_path))
    assert state_of(tmp_path / "schedules.db") is State.USABLE
    assert not list(tmp_path.glob("*.new-*"))


def test_several_that_start_at_once_create_a_database_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, create = databases.DATABASES["SqliteScheduleStorage"]
    created: list[str] = []

    def counted(folder: str) -> object:
        created.append(folder)
        return create(folder)

    monkeypatch.setitem(databases.DATABASES, "SqliteScheduleStorage", (name, counted))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ensure_database("SqliteScheduleStorage", str(tmp_path)), range(8)))
    assert len(created) == 1
    assert state_of(tmp_path / name) is State.USABLE


def test_a_file_that_is_no_database_stays_for_its_owner_to_look_at(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_bytes(b"these are the notes of a user, and no database at all" * 40)
    before = (tmp_path / "runs.db").read_bytes()
    ensure_database("SqliteRunStorage", str(tmp_path))
    assert (tmp_path / "runs.db").read_bytes() == before


AT_ONCE = """
import os, random, shutil, signal, sys, time, traceback
from pathlib import Path
import alembic.command, dagster as dg
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from marin_resources.dagster_fixes.databases import open_instance
from marin_resources.configuration.settings import ensure_dagster_home, project_root

def start(home, gate, through_yaml):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.read(gate, 1)
            os.environ["DAGSTER_HOME"] = home
            if not through_yaml:
                ensure_dagster_home()
            with dg.DagsterInstance.get() if through_yaml else open_instance() as instance:
                instance.add_run(dg.DagsterRun(job_name="work"))
                instance.report_runless_asset_event(dg.AssetMaterialization("x"))
                instance.all_instigator_state()
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    return pid

def trial(folder, processes, kill_after_s, through_yaml):
    home = os.path.join(folder, "home")
    if through_yaml:
        os.makedirs(home)
        shutil.copy(project_root() / ".dagster/dagster.yaml", home)
    gate, opened = os.pipe()
    pids = [start(home, gate, through_yaml) for _ in range(processes)]
    os.write(opened, b"x" * processes)
    if kill_after_s is not None:
        time.sleep(kill_after_s)  # the moment of the kill
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    codes = [os.waitpid(pid, 0)[1] for pid in pids]
    if kill_after_s is not None:
        os.write(opened, b"x")
        codes = [os.waitpid(start(home, gate, through_yaml), 0)[1]]
    return any(codes)

folder, trials, kills = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "kill"
random.seed(7)
failed = 0
for number in range(trials):
    os.makedirs(f"{folder}/{number}")
    after_s = random.random() * 2 if kills else None
    failed += trial(f"{folder}/{number}", random.randint(2, 8), after_s, through_yaml=number % 2 == 1)
print(f"{failed} of {trials} trials failed")
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["all live", "kill"])
def test_a_fresh_home_survives_processes_that_start_at_once_and_their_kill(tmp_path: Path, kind: str) -> None:
    words = [sys.executable, "-W", "ignore", "-c", AT_ONCE, str(tmp_path), "10", kind]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    assert done.stdout == "0 of 10 trials failed\n", done.stdout + done.stderr[-5000:]


def test_a_home_that_is_opened_again_and_again_keeps_nothing_of_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tick of a sensor opens one, in a process that lives for weeks."""
    monkeypatch.setattr(ScriptDirectory, "from_config", quick_databases.AS_IT_IS)
    with dg.DagsterInstance.get() as instance:
        instance.report_engine_event("it began", create_run_for_test(instance))
    before = atexit._ncallbacks()
    for _ in range(3):
        with dg.DagsterInstance.get() as instance:
            [run] = instance.get_runs()
            assert [entry.message for entry in instance.all_logs(run.run_id)] == ["it began"]
            assert not instance.all_instigator_state()
    assert atexit._ncallbacks() == before


def test_runs_and_schedules_are_read_by_one_engine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster creates one for each connection."""
    with dg.DagsterInstance.get() as instance:
        for module in (sqlite_run_storage, sqlite_schedule_storage):
            monkeypatch.setattr(module, "create_engine", lambda *_, **__: pytest.fail("another engine"))
        for _ in range(2):
            assert instance.get_runs() == []
            assert list(instance.all_instigator_state()) == []


def test_a_database_without_a_table_of_today_gets_it(home: Path) -> None:
    with dg.DagsterInstance.get() as instance:
        run_id = create_run_for_test(instance).run_id
    edit(home / "history/runs.db", "DROP TABLE instance_info")
    with dg.DagsterInstance.get() as instance:
        assert instance.get_run_by_id(run_id) is not None
    with contextlib.closing(sqlite3.connect(home / "history/runs.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'instance_info'").fetchall()
