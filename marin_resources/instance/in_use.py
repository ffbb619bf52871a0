"""The users of an instance: processes with a file of its home open, and a daemon by its heartbeat."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from marin_resources.instance.archive import BackUpError
from marin_resources.instance.sqlite import LOGS

if TYPE_CHECKING:
    import dagster as dg

BEAT_S = 90.0
"""A daemon's heart beats every 30 s."""


@contextmanager
def alone(home: Path, doing: str) -> Iterator[None]:
    """Keep the instance for the block. Raise BackUpError if it is in use, or somebody else keeps it.

    The kernel's lock of the folder ends with the process.
    """
    fd = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        require_unused(home, doing)
        yield
    except BlockingIOError:
        raise BackUpError(f"Another process restores or upgrades {str(home)!r} now. Wait for its end.") from None
    finally:
        os.close(fd)


def require_unused(home: Path, doing: str) -> None:
    """Raise BackUpError, with the processes, if the instance is in use. `doing` is a gerund, for the sentence."""
    users = [*_processes(home), *_daemon(home)]
    if users:
        raise BackUpError(
            f"{doing} {str(home)!r} needs it for itself, and it is in use by {', '.join(users[:5])}. Stop the daemon, "
            "the webserver and all runs, and try again. A daemon counts for 90 s after its end."
        )


def require_no_daemon(instance: dg.DagsterInstance, doing: str) -> None:
    """Raise BackUpError if a daemon has been alive a moment ago, on whichever machine, with whichever database."""
    last_s = max((beat.timestamp for beat in instance.get_daemon_heartbeats().values()), default=0.0)
    if time.time() - last_s < BEAT_S:
        raise BackUpError(
            f"{doing} needs the instance for itself, and a daemon was alive {time.time() - last_s:.0f} s ago. Stop the "
            f"daemon, the webserver and all runs, and try again after {BEAT_S:.0f} s."
        )


def _processes(home: Path) -> Iterator[str]:
    """Those of this user, or of all users for root, by the files that they have open."""
    below, logs = f"{home.resolve()}/", f"{home.resolve() / LOGS}/"
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with suppress(psutil.Error, OSError):
            if any(file.path.startswith(below) and not file.path.startswith(logs) for file in process.open_files()):
                yield f"process {process.pid} ({process.name()})"


def _daemon(home: Path) -> Iterator[str]:
    """A daemon on another machine too; its connections may be closed between two beats."""
    try:
        with closing(sqlite3.connect(f"{(home / 'history/runs.db').as_uri()}?mode=ro", uri=True)) as database:
            query = "SELECT MAX(CAST(strftime('%s', timestamp) AS INTEGER)) FROM daemon_heartbeats"
            beat_s = database.execute(query).fetchone()[0]
    except sqlite3.DatabaseError:  # none exists, or it is damaged and about to be replaced
        return
    if beat_s is not None and time.time() - beat_s < BEAT_S:
        yield f"a daemon, which was alive {time.time() - beat_s:.0f} s ago"
