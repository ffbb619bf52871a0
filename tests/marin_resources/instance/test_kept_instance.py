"""An instance is backed up, lost and restored: on SQLite and on Postgres, in use and after kills."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_homes import laptop_home, new_home
from kept_instance import fill, seen
from postgres_server import PASSWORD, Postgres, default_programs, postgres
from running import ROOT, wait_until

from marin_assets.cli.main import main
from marin_resources.instance.back_up import back_up
from marin_resources.instance.in_use import alone
from marin_resources.instance.restore import restore

PROFILE = ROOT / "deploy/vm/dagster.yaml"
"""Names Postgres by the environment."""
Marin = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture(params=["SQLite", pytest.param("Postgres", marks=pytest.mark.long)])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An instance with something in it, at DAGSTER_HOME."""
    home = laptop_home(tmp_path / "dagster")
    if request.param == "Postgres":
        url = request.getfixturevalue("server").create(f"db_{os.urandom(4).hex()}")
        (home / "dagster.yaml").write_text(PROFILE.read_text())
        monkeypatch.setenv("MARIN_POSTGRES_URL", url)
        monkeypatch.setenv("MARIN_PREFIX", str(tmp_path / "prefix"))  # where the profile keeps what runs print
        monkeypatch.setenv("PATH", f"{default_programs()}:{os.environ['PATH']}")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        fill(instance, ["a", "b"])
    return home


@pytest.fixture
def small_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One on SQLite with nothing in it."""
    home = new_home(tmp_path / "dagster")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return home


@pytest.fixture
def marin(capsys: pytest.CaptureFixture[str]) -> Marin:
    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def look(home: Path) -> dict[str, Any]:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        return seen(instance)


def lose(home: Path) -> None:
    """All that is below the home but dagster.yaml, or all tables."""
    if "MARIN_POSTGRES_URL" not in (home / "dagster.yaml").read_text():
        subprocess.run(["rm", "-r", home / "history", home / "schedules"], check=True)
        return
    url = os.environ["MARIN_POSTGRES_URL"]
    query = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
    subprocess.run([default_programs() / "psql", url, "-c", query], check=True, capture_output=True)


def test_what_was_lost_comes_back(home: Path, marin: Marin, tmp_path: Path) -> None:
    before, kept = look(home), tmp_path / "kept.tar.zst"
    code, out, _ = marin("instance", "backup", kept)
    assert code == 0
    assert out.startswith(f"backed up 2 runs of {home} to {kept} (")
    assert kept.stat().st_mode & 0o077 == 0
    lose(home)
    assert look(home) != before
    code, out, err = marin("instance", "restore", kept, "--replace")
    assert code == 0, err
    assert f"restored 2 runs at {home}" in out
    assert look(home) == before


def test_what_is_replaced_is_kept_aside_and_only_if_that_is_asked_for(home: Path, marin: Marin, tmp_path: Path) -> None:
    kept, before = tmp_path / "kept.tar.zst", look(home)
    assert marin("instance", "backup", kept)[0] == 0
    with dg.DagsterInstance.from_config(str(home)) as instance:
        fill(instance, ["c"])
    later = look(home)
    code, _, err = marin("instance", "restore", kept)
    assert code == 2
    assert "--replace" in err
    assert look(home) == later
    code, out, _ = marin("instance", "restore", kept, "--replace")
    assert code == 0
    assert look(home) == before
    aside = Path(out.splitlines()[1].removeprefix("what was there is in "))
    assert sorted(path.name for path in aside.iterdir()) in (["history", "schedules", "storage"], ["postgres.dump"])


def test_a_back_up_is_made_while_runs_write(home: Path, tmp_path: Path) -> None:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        writing = threading.Event()

        def write() -> None:
            for number in range(6):
                fill(instance, [f"more-{number}"])
                writing.set()

        writer = threading.Thread(target=write)
        writer.start()
        writing.wait()
        back_up(instance, home, tmp_path / "kept.tar.zst")
        writer.join()
        whole = seen(instance)
        url = None
        if "MARIN_POSTGRES_URL" in (home / "dagster.yaml").read_text():
            from marin_resources.instance.postgres import url_of

            url = url_of(instance)
    restore(tmp_path / "kept.tar.zst", home, url=url, replace=True)
    part = look(home)
    known = {dict(tags)["dagster/partition"] for _, _, tags in part["runs"]}
    assert {"a", "b", "more-0"} <= set(part["partitions"]) <= known
    assert known <= {dict(tags)["dagster/partition"] for _, _, tags in whole["runs"]}


def test_no_argument_of_a_process_holds_the_password(
    server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy.engine import make_url

    from marin_resources.instance import postgres as by_programs

    said = tmp_path / "arguments"
    (tmp_path / "pg_dump").write_text(f'#!/bin/sh\necho "$@" > {said}\nexit 1\n')
    (tmp_path / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(by_programs.BackUpError, match="pg_dump failed"):
        by_programs.dump(make_url(server.create("for_its_arguments")), tmp_path / "dump")
    assert "for_its_arguments" in said.read_text()
    assert PASSWORD not in said.read_text()


def test_a_file_is_never_replaced(small_home: Path, marin: Marin, tmp_path: Path) -> None:
    kept = tmp_path / "kept.tar.zst"
    kept.write_text("mine")
    code, _, err = marin("instance", "backup", kept)
    assert code == 2
    assert err == f"{str(kept)!r} exists, and a back-up replaces no file. Choose another name.\n"
    assert kept.read_text() == "mine"
    code, _, err = marin("instance", "backup", tmp_path / "no-folder" / "kept")
    assert code == 2
    assert "Create it." in err


@pytest.mark.parametrize("damage", ["cut", "bytes", "text", "absent", "folder"])
def test_a_damaged_back_up_is_refused_and_changes_nothing(
    small_home: Path, marin: Marin, tmp_path: Path, damage: str
) -> None:
    kept = tmp_path / "kept.tar.zst"
    assert marin("instance", "backup", kept)[0] == 0
    data = kept.read_bytes()
    match damage:
        case "cut":
            kept.write_bytes(data[: len(data) // 2])
        case "bytes":
            kept.write_bytes(data[:3000] + bytes(byte ^ 0xFF for byte in data[3000:3100]) + data[3100:])
        case "text":
            kept.write_text("no back-up")
        case "absent" | "folder":
            kept.unlink()
    if damage == "folder":
        kept.mkdir()
    before = sorted(small_home.rglob("*"))
    code, _, err = marin("instance", "restore", kept, "--replace")
    assert code == 2
    assert err.count("\n") == 1
    assert str(kept) in err
    assert sorted(small_home.rglob("*")) == before


def test_it_is_restored_into_a_new_home(
    small_home: Path, marin: Marin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dg.DagsterInstance.from_config(str(small_home)) as instance:
        fill(instance, ["a"])
    before, kept = look(small_home), tmp_path / "kept.tar.zst"
    assert marin("instance", "backup", kept, "--no-logs")[0] == 0
    other = tmp_path / "other"
    monkeypatch.setenv("DAGSTER_HOME", str(other))
    code, out, err = marin("instance", "restore", kept)
    assert (code, out) == (0, f"restored 1 run at {other}\n"), err
    assert look(other) == before
    assert (other / "dagster.yaml").read_text() == (small_home / "dagster.yaml").read_text()
    assert not (other / "storage").exists()


def test_an_instance_in_use_is_not_replaced(small_home: Path, marin: Marin, tmp_path: Path) -> None:
    kept = tmp_path / "kept.tar.zst"
    assert marin("instance", "backup", kept)[0] == 0
    code = "import sys; file = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(small_home / "history/runs.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as user:
        assert user.stdout is not None
        user.stdout.readline()
        exit_code, _, err = marin("instance", "restore", kept, "--replace")
        assert user.stdin is not None
        user.stdin.close()
    assert exit_code == 2
    assert f"it is in use by process {user.pid} (" in err
    assert marin("instance", "restore", kept, "--replace")[0] == 0


def test_a_daemon_that_was_alive_a_moment_ago_counts_as_a_user(small_home: Path, marin: Marin, tmp_path: Path) -> None:
    from dagster._daemon.controller import debug_daemon_heartbeats

    kept = tmp_path / "kept.tar.zst"
    assert marin("instance", "backup", kept)[0] == 0
    with dg.DagsterInstance.from_config(str(small_home)) as instance:
        debug_daemon_heartbeats(instance)
    code, _, err = marin("instance", "restore", kept, "--replace")
    assert code == 2
    assert "it is in use by a daemon, which was alive" in err


def test_two_restores_at_once_are_one_and_a_sentence(small_home: Path, marin: Marin, tmp_path: Path) -> None:
    kept = tmp_path / "kept.tar.zst"
    assert marin("instance", "backup", kept)[0] == 0
    with alone(small_home, "Restoring"):
        code, _, err = marin("instance", "restore", kept, "--replace")
    assert (code, err) == (2, f"Another process restores or upgrades {str(small_home)!r} now. Wait for its end.\n")
    assert marin("instance", "restore", kept, "--replace")[0] == 0


@pytest.mark.parametrize("damaged", ["dagster.yaml", "history/runs.db"])
def test_an_instance_that_cannot_be_read_is_a_sentence(
    small_home: Path, marin: Marin, tmp_path: Path, damaged: str
) -> None:
    (small_home / damaged).write_text("storage: [postgres\n" * 100)
    code, _, err = marin("instance", "backup", tmp_path / "kept.tar.zst")
    assert code == 2
    assert f"The instance at {str(small_home)!r} cannot be read (" in err
    assert not (tmp_path / "kept.tar.zst").exists()


@pytest.mark.long
@pytest.mark.parametrize("verb", ["backup", "restore"])
def test_a_kill_in_the_middle_leaves_nothing_half_done(
    small_home: Path, marin: Marin, tmp_path: Path, verb: str
) -> None:
    with dg.DagsterInstance.from_config(str(small_home)) as instance:
        fill(instance, ["a"])
    before, kept = look(small_home), tmp_path / "kept.tar.zst"
    if verb == "restore":
        assert marin("instance", "backup", kept)[0] == 0
    arguments = ["instance", verb, str(kept), *(["--replace"] if verb == "restore" else [])]
    reached = tmp_path / "reached"
    stop_in = {"backup": "archive._add_list", "restore": "restore._put_in_place"}[verb]
    module, _, function = stop_in.partition(".")
    code = f"""
import pathlib, signal, marin_resources.instance.{module} as module
def stop(*args, **options):
    pathlib.Path({str(reached)!r}).touch()
    signal.pause()
module.{function} = stop
from marin_assets.cli.main import main
main({arguments!r})
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        wait_until(reached.exists, "the middle", 60)
        process.send_signal(signal.SIGKILL)
    assert look(small_home) == before
    if verb == "backup":
        assert not kept.exists()
    assert marin(*arguments)[0] == 0
    assert look(small_home) == before
    assert not list(small_home.glob(".restoring-*"))


def downgrade(home: Path) -> None:
    """The tables as an older release of Dagster has made them, by Dagster's own migrations."""
    from dagster._core.storage.runs.sqlite import sqlite_run_storage
    from dagster._core.storage.sql import get_alembic_config, run_alembic_downgrade
    from sqlalchemy import create_engine

    config = get_alembic_config(sqlite_run_storage.__file__)
    with create_engine(f"sqlite:///{home / 'history/runs.db'}").connect() as connection:
        run_alembic_downgrade(config, connection, "-1")


def revision(home: Path) -> str:
    with closing(sqlite3.connect(home / "history/runs.db")) as database:
        return str(database.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def test_old_tables_are_upgraded_after_a_back_up(small_home: Path, marin: Marin) -> None:
    with dg.DagsterInstance.from_config(str(small_home)) as instance:
        fill(instance, ["a"])
    before, newest = look(small_home), revision(small_home)
    downgrade(small_home)
    old = revision(small_home)
    assert old != newest
    code, out, err = marin("instance", "upgrade")
    assert code == 0, err
    assert f"runs: revision {old}, the newest is {newest}" in out
    assert out.endswith(f"upgraded {small_home}\n")
    assert (revision(small_home), look(small_home)) == (newest, before)
    assert marin("instance", "upgrade")[1] == f"{small_home} has the newest tables: nothing to do\n"
    [kept] = (small_home / "back-ups").iterdir()
    assert marin("instance", "restore", kept, "--replace")[0] == 0
    assert revision(small_home) == old


def test_the_tables_of_a_living_daemon_are_not_upgraded(small_home: Path, marin: Marin) -> None:
    from dagster._daemon.controller import debug_daemon_heartbeats

    with dg.DagsterInstance.from_config(str(small_home)) as instance:
        debug_daemon_heartbeats(instance)
    downgrade(small_home)
    old = revision(small_home)
    code, _, err = marin("instance", "upgrade")
    assert code == 2
    assert "Upgrading needs the instance for itself, and a daemon was alive" in err
    assert revision(small_home) == old


def test_tables_of_a_newer_release_are_refused(small_home: Path, marin: Marin, tmp_path: Path) -> None:
    kept = tmp_path / "kept.tar.zst"
    with closing(sqlite3.connect(small_home / "history/runs.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = 'fffffffffff0'")
    code, _, err = marin("instance", "upgrade")
    assert code == 2
    assert "The tables of runs have revision fffffffffff0, which the installed Dagster does not know" in err
    assert marin("instance", "backup", kept)[0] == 0
    code, _, err = marin("instance", "restore", kept, "--replace")
    assert code == 2
    assert "Install that release." in err


@pytest.mark.long
@pytest.mark.parametrize("home", ["Postgres"], indirect=True)
def test_a_back_up_of_another_kind_is_refused(
    home: Path, marin: Marin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept.tar.zst"
    assert marin("instance", "backup", kept)[0] == 0
    monkeypatch.setenv("DAGSTER_HOME", str(new_home(tmp_path / "other")))
    code, _, err = marin("instance", "restore", kept, "--replace")
    assert code == 2
    assert "is of an instance on postgres, and this one is on sqlite" in err
