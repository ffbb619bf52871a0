"""Restore an instance from its back-up: checked first, then put in place. The earlier instance is kept aside.

A process that is killed while it unpacks leaves the instance as it was. One that is killed while it renames leaves an
incomplete home, which the same command completes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marin_resources.instance import postgres, sqlite
from marin_resources.instance.archive import BackUpError, unpack
from marin_resources.instance.back_up import YAML
from marin_resources.instance.in_use import alone
from marin_resources.instance.revisions import known_revisions

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

PARTS = ("history", "schedules", sqlite.LOGS)
UNPACKING = ".restoring-"


def restore(source: Path, home: Path, *, url: URL | None = None, replace: bool = False) -> Path | None:
    """Put the back-up in place; return where what it replaced is kept, None if it replaced nothing.

    `url` is the database of an instance on Postgres. Raises BackUpError, and then the instance is as it was.
    """
    home.mkdir(parents=True, exist_ok=True)
    with alone(home, "Restoring"):
        for remains in home.glob(f"{UNPACKING}*"):  # by a process that was killed
            shutil.rmtree(remains)
        with tempfile.TemporaryDirectory(prefix=UNPACKING, dir=home) as folder:
            unpacked = Path(folder)
            facts = unpack(source, unpacked)
            _refuse_other(source, facts, url)
            if url is not None:
                return _load(url, unpacked, home, replace=replace)
            _refuse_damaged(source, unpacked)
            return _put_in_place(unpacked, home, replace=replace)


def _refuse_other(source: Path, facts: dict[str, Any], url: URL | None) -> None:
    kind = "postgres" if url is not None else "sqlite"
    if facts["kind"] != kind:
        raise BackUpError(
            f"The back-up {str(source)!r} is of an instance on {facts['kind']}, and this one is on {kind}. Restore it "
            "into an instance of its kind; `marin sync` shows the complete outputs to any other."
        )
    unknown = sorted(set(facts["revisions"].values()) - known_revisions())
    if unknown:
        raise BackUpError(
            f"The back-up {str(source)!r} is of Dagster {facts['dagster']}, whose tables (revision {unknown[0]}) the "
            "installed one does not know. Install that release."
        )


def _refuse_damaged(source: Path, unpacked: Path) -> None:
    for name in sqlite.database_files(unpacked):
        if damage := sqlite.damage_of(unpacked / name):
            raise BackUpError(f"The back-up {str(source)!r} has a damaged {name!r} ({damage}). Use another.")


def _put_in_place(unpacked: Path, home: Path, *, replace: bool) -> Path | None:
    existing = [part for part in PARTS if (home / part).exists()]
    if existing and not replace:
        raise BackUpError(
            f"{str(home)!r} has an instance already ({', '.join(existing)}). Restore into an empty folder, or add "
            "--replace: what is there is kept aside."
        )
    aside = _aside(home) if existing else None
    for part in existing:
        assert aside is not None
        os.rename(home / part, aside / part)
    for part in ("schedules", sqlite.LOGS, "history"):  # the runs last: without them nothing looks complete
        if (unpacked / part).exists():
            os.rename(unpacked / part, home / part)
    if (unpacked / YAML).exists() and not (home / YAML).exists():
        os.rename(unpacked / YAML, home / YAML)
    return aside


def _load(url: URL, unpacked: Path, home: Path, *, replace: bool) -> Path | None:
    if users := postgres.count_users(url):
        raise BackUpError(
            f"The database {url.database!r} has {users} connections. Stop all that uses it, and try again."
        )
    if not replace:
        raise BackUpError(f"The database {url.database!r} is about to be replaced. Add --replace: it is kept aside.")
    aside = _aside(home)
    postgres.dump(url, aside / postgres.DUMP)
    postgres.load(url, unpacked / postgres.DUMP)
    return aside


def _aside(home: Path) -> Path:
    aside = home / f"replaced-{datetime.now(UTC).strftime('%Y-%m-%dT%H-%M-%S.%f')}"
    aside.mkdir()
    return aside
