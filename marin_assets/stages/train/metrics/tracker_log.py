"""Interface of one tracker of a training: it follows the metrics file, and keeps files below the output path."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from marin_assets.stages.train.metrics.metrics import Follower, Row
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join


class TrackerLog(Follower, Protocol):
    """One tracker of a run."""

    link: tuple[str, str]
    """The tracker's name, and where a person finds the run: a URL, or a command."""


def feed(log: Follower, rows: Iterable[Row]) -> None:
    """Give a tracker the rows that an earlier attempt has left."""
    for row in rows:
        log.add(row["step"], {name: value for name, value in row.items() if name != "step"})


def copy_folder(local: str, folder: str, only: str = "") -> None:
    """Copy the files below a local folder whose names there begin with `only`."""
    root = Path(local)
    for file in sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink()):
        name = file.relative_to(root).as_posix()
        if name.startswith(only):
            write_bytes(join(folder, name), file.read_bytes())
