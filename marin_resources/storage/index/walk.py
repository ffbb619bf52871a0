"""All outputs below a prefix, found without knowing any step: each folder that has a status.

In:  a prefix.   Out: its outputs, each with its record.   Written: nothing.

The status of a folder is read before the folder is listed, so that what an output holds is never listed. Partitions are
folders below that of their version, which has no status.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from marin_resources.storage.files import folders_in
from marin_resources.storage.output.commit import recorded
from marin_resources.storage.output.status import read_status
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Output, Status, identity_of
from marin_resources.types.partition_key import key_of
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

THREADS = 32
DIGITS = 6
"""Digits of a version, in a path."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A folder with a status."""

    path: str
    status: Status | None
    """None if it cannot be read."""
    output: Output | None = None
    """The complete output, if its record identifies it and it is at the path in the record."""
    record: Record | None = None
    damage: str = ""


def walk(prefix: str) -> Iterator[Found]:
    """Every output below the prefix, in no order. Raises UnavailableError."""
    seen: set[str] = set()
    folders = [prefix]
    with ThreadPoolExecutor(THREADS) as pool:
        while folders:
            below: list[str] = []
            for entry, inside in pool.map(lambda folder: _visit(prefix, folder), _new(folders, seen)):
                if entry is not None:
                    yield entry
                below += inside
            folders = below


def found_at(prefix: str, path: str) -> Found | None:
    """The output in this folder; None if the folder has no status. Raises UnavailableError."""
    try:
        status = read_status(path)
        if status is not Status.SUCCESS:
            return None if status is None else Found(path=path, status=status)
        record = recorded(path, status)
    except ControlFileError as error:
        return Found(path=path, status=None, damage=str(error))
    output = None if record is None else _output_of(record, path.removeprefix(prefix).strip("/"))
    return Found(path=path, status=status, output=output, record=record)


def _visit(prefix: str, folder: str) -> tuple[Found | None, list[str]]:
    """The content of a folder: an output, or folders that are still to be visited."""
    if folder != prefix and (entry := found_at(prefix, folder)) is not None:
        return entry, []
    return None, [join(folder, name) for name in folders_in(folder) if not name.startswith(".")]


def _new(folders: list[str], seen: set[str]) -> list[str]:
    """The folders that were not visited yet: links on a disk may lead in a circle."""
    unseen = []
    for folder in folders:
        place = os.path.realpath(folder) if is_local(folder) else folder
        if place not in seen:
            seen.add(place)
            unseen.append(folder)
    return unseen


def _output_of(record: Record, relative: str) -> Output | None:
    """The output with this record, if its path below the prefix is this one: a copy elsewhere is another output."""
    key = None if record.partition is None else key_of(relative.rpartition("/")[2])
    name, _, digits = (relative if key is None else relative.rpartition("/")[0]).rpartition("-")
    identity, version = record.identity, record.version
    if version:
        name, digits = str(version.get("name")), hashlib.md5(_text(version)).hexdigest()[:DIGITS]
        whole = Output(name=name, version=digits, identity=identity_of(version))
        identity = identity or (whole if key is None else whole.at(key)).identity
    if not identity or not name:
        return None
    override = record.override_output_path
    output = Output(name=name, version=digits, identity=identity, partition=key, override=override)
    return output if output.relative().strip("/") == relative else None


def _text(version: Mapping[str, Any]) -> bytes:
    return json.dumps(version, sort_keys=True).encode()
