"""Records of outputs that were removed, for later questions why they were computed.

    <prefix>/.marin/history/<name>-<version>/<seconds>.json       of a partition: <name>-<version>/<key>/<seconds>.json

Each is the record of the output as it was, by the time when it was complete, in seconds since 1970.
"""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor

from marin_resources.storage.completion.markers import seconds_of
from marin_resources.storage.control import control
from marin_resources.storage.files import folders_in, names_in
from marin_resources.storage.output.commit import recorded
from marin_resources.storage.output.record import RecordError, parse_record
from marin_resources.storage.output.status import read_status
from marin_resources.storage.paths import join
from marin_resources.types.output import Status
from marin_resources.types.places import relative_to
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

FOLDER = ".marin/history"
"""Folder below the prefix."""
THREADS = 16

log = logging.getLogger(__name__)


def past_records(prefix: str, relative: str) -> list[Record]:
    """The records of the outputs that were at this path below the prefix, and are removed. Raises UnavailableError.

    One that is damaged is left out with a warning.
    """
    folder = join(prefix, FOLDER, relative)
    names = sorted(name for name in names_in(folder) if name.removesuffix(".json").isdecimal())
    with ThreadPoolExecutor(THREADS) as pool:
        records = list(pool.map(lambda name: _read(join(folder, name)), names))
    return [record for record in records if record is not None]


def complete_record(prefix: str, path: str) -> Record | None:
    """The record of a complete output in place; of one that was removed, the newest that is left. None without one.

    A damaged one is passed over. Raises UnavailableError.
    """
    try:
        record = recorded(path, Status.SUCCESS)
        if record is not None and (record.manifest or read_status(path) is Status.SUCCESS):
            return record
    except ControlFileError as error:
        log.warning("%s", error)
    relative = relative_to(path, [prefix])
    past = past_records(prefix, relative) if relative is not None else []
    return past[-1] if past else None


def past_versions(prefix: str, name: str) -> list[str]:
    """The paths "<name>-<version>" of a step that have records here, by one listing."""
    parent, _, last = name.rpartition("/")
    folders = folders_in(join(prefix, FOLDER, parent) if parent else join(prefix, FOLDER))
    return [f"{parent}/{folder}" if parent else folder for folder in folders if folder.rpartition("-")[0] == last]


def _read(path: str) -> Record | None:
    try:
        snapshot = control.read(path)
        return None if snapshot is None else parse_record(snapshot.data, path)
    except RecordError as error:
        log.warning("%s", error)
        return None


def keep_record(prefix: str, relative: str, record: Record) -> str:
    """Keep the record of the output at this path below the prefix; return where. Raises UnavailableError."""
    path = join(prefix, FOLDER, relative, f"{seconds_of(record)}.json")
    control.put(path, (json.dumps(record.to_dict(), indent=2) + "\n").encode())
    return path
