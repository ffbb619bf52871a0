"""Back an instance up while it is in use: each database as of one moment; the moments are seconds apart."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from marin_resources.instance import postgres, sqlite
from marin_resources.instance.archive import BackUpError, Writer, new_archive
from marin_resources.instance.revisions import revisions_of

if TYPE_CHECKING:
    import dagster as dg

YAML = "dagster.yaml"
Progress = Callable[[list[str]], Iterable[str]]


def back_up(
    instance: dg.DagsterInstance, home: Path, target: Path, *, logs: bool = True, progress: Progress = iter
) -> int:
    """Write the back-up of the instance at `home`; return its size in bytes. `progress` wraps the names of files.

    `logs`: what runs have printed too, if it is below the home. Raises BackUpError.
    """
    import dagster

    url = postgres.url_of(instance)
    facts = {
        "kind": "postgres" if url is not None else "sqlite",
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "dagster": dagster.__version__,
        "revisions": {revision.what: revision.found for revision in revisions_of(instance)},
    }
    with (
        new_archive(target, facts) as archive,
        tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder,
    ):
        copy = Path(folder, "copy")
        if url is not None:
            postgres.dump(url, copy)
            archive.add(postgres.DUMP, copy)
        else:
            _add_databases(archive, home, copy, progress)
        if logs:
            for name in sqlite.log_files(home):
                _add_if_there(archive, name, home / name)
        if (home / YAML).is_file():
            archive.add(YAML, home / YAML)
    return target.stat().st_size


def _add_databases(archive: Writer, home: Path, copy: Path, progress: Progress) -> None:
    names = list(sqlite.database_files(home))
    if not names:
        raise BackUpError(f"{str(home)!r} has no database of Dagster's. Set DAGSTER_HOME to the instance.")
    for name in progress(names):
        sqlite.copy_database(home / name, copy)
        archive.add(name, copy)
        copy.unlink()


def _add_if_there(archive: Writer, name: str, path: Path) -> None:
    """A log is removed with its run, which may be now."""
    try:
        archive.add(name, path)
    except FileNotFoundError:
        return
