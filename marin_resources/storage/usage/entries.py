"""An entry for each attempt that costs more than a CPU: it holds devices, or reads from other regions.

    <prefix>/.marin/usage/<day>/<attempt>-<digest of the path>.json

The worker writes the entry before it calls the step's function, in the folder of the day, UTC. So one listing for each
day finds the attempts of everybody who writes below the prefix, whichever deployment they use. When an attempt ended is
in its mark.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from marin_resources.hardware.resources import Resources
from marin_resources.storage.control import control
from marin_resources.storage.files import names_in
from marin_resources.storage.paths import join
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

FOLDER = ".marin/usage"
"""Folder below the prefix."""
FORMAT_VERSION = 1
THREADS = 16


class UsageError(ControlFileError):
    """An entry that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="usage entry",
    newest=FORMAT_VERSION,
    error=UsageError,
    shape={
        **dict.fromkeys(("path", "step", "started_at"), Required(str)),
        "attempt": Required(int),
        "pool": str,
        "devices": Required(int),
        "run_id": str,
        "moved_bytes": int,
    },
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An attempt that holds devices, or reads from other regions."""

    path: str
    """Path of the output."""
    step: str
    """Label of the output: "tokenized/web[2026-01]"."""
    attempt: int
    started_at: str
    """ISO 8601, UTC, by the worker's clock."""
    pool: str | None = None
    """The pool of its devices: "gpu_H100"; None without a device."""
    devices: int = 0
    """GPUs, or chips of TPUs."""
    run_id: str | None = None
    """The Dagster run that began it."""
    moved_bytes: int | None = None
    """Bytes that earlier attempts had moved from other regions; None if it reads from none."""

    @property
    def started(self) -> datetime:
        return datetime.fromisoformat(self.started_at)


def entry_of(
    path: str,
    step: str,
    attempt: int,
    resources: Resources,
    *,
    started: datetime,
    run_id: str | None,
    moved_bytes: int | None,
) -> Entry | None:
    """The entry of an attempt; None if it costs a CPU alone. `moved_bytes`: None if it reads from no other region."""
    if not resources.devices and moved_bytes is None:
        return None
    return Entry(
        path=path,
        step=step,
        attempt=attempt,
        started_at=started.isoformat(),
        pool=resources.pool,
        devices=resources.devices,
        run_id=run_id,
        moved_bytes=moved_bytes,
    )


def enter(prefix: str, entry: Entry) -> None:
    """Write the entry. Raises UnavailableError."""
    text = json.dumps({"format_version": FORMAT_VERSION, **dataclasses.asdict(entry)}, indent=2)
    control.put(entry_path(prefix, entry.path, entry.attempt, entry.started), text.encode())


def entry_path(prefix: str, output_path: str, attempt: int, started: datetime) -> str:
    """The path of the entry of an attempt, if it has one."""
    name = f"{attempt}-{hashlib.sha256(output_path.encode()).hexdigest()[:16]}.json"
    return join(_folder(prefix, started.astimezone(UTC).date()), name)


def entries(prefix: str, first: date, last: date) -> list[str]:
    """The paths of the entries of these days, the first and the last included. Raises UnavailableError."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    existing = frozenset(names_in(join(prefix, FOLDER)))
    folders = [_folder(prefix, day) for day in days if day.isoformat() in existing]
    with ThreadPoolExecutor(THREADS) as pool:
        listings = pool.map(names_in, folders)
        return [join(folder, name) for folder, names in zip(folders, listings, strict=True) for name in names]


def read_entry(path: str) -> Entry:
    """Raises UsageError, UnavailableError, and FileNotFoundError for an entry that is gone."""
    snapshot = control.read(path)
    if snapshot is None:
        raise FileNotFoundError(f"No usage entry exists at {path!r}.")
    fields = FORMAT.parse(snapshot.data, path)
    names = {field.name for field in dataclasses.fields(Entry)}
    entry = Entry(**{name: value for name, value in fields.items() if name in names})
    try:
        if entry.started.tzinfo is None:
            raise ValueError("it has no time zone")
    except ValueError as error:
        raise FORMAT.damaged(path, f"has started_at={entry.started_at!r} ({error})") from None
    return entry


def _folder(prefix: str, day: date) -> str:
    return join(prefix, FOLDER, day.isoformat())
