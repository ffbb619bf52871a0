"""Leftovers: files of an earlier attempt below an output. They are resumed or moved aside; unknown ones are refused.

They are listed before the claim. In a bucket exactly the listed generations are moved: an object that a newer attempt
has written at the same path has another generation, and stays.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from marin_resources.storage import fault_points
from marin_resources.storage.control import control
from marin_resources.storage.control.disk import locked
from marin_resources.storage.control.protocol import ConflictError
from marin_resources.storage.files import StoredFile, move, remove, stored_files
from marin_resources.storage.filesystems.disk import TEMPORARY_SUFFIX
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.filesystems.sharing import make_folders
from marin_resources.storage.lease import lease
from marin_resources.storage.output import record, status
from marin_resources.storage.paths import absolute, is_local, join
from marin_resources.types.errors import MarinError
from marin_resources.types.places import is_same, is_within

SHARDS = ".marin/shards"
"""The notes of finished shards belong to the data; everything else in `.marin` stays."""
CONTROL_FOLDERS = ("", ".marin", ".marin/attempts")
REQUESTS_AT_ONCE = 16
_CONTROL = {status.NAME, record.NAME, lease.NAME, ".marin"}


class StoreError(MarinError):
    """An output's path cannot be used: one sentence with the path and what to do."""


@dataclass(frozen=True, kw_only=True)
class Leftovers:
    names: tuple[str, ...]
    """Files and folders directly below the output."""
    objects: tuple[StoredFile, ...] = ()
    """In a bucket, every object, with its generation."""


def refuse_folder_of_all(path: str, prefix: str) -> None:
    """Raise StoreError for a path that is no output's own, as it has files of all outputs inside: the prefix or a
    folder above it, that of experiments, and `.marin`."""
    if is_within(prefix, path):
        reason = f"has the prefix {prefix!r} inside" if not is_same(prefix, path) else "is the prefix itself"
    elif is_same(path, join(prefix, "experiments")) or is_within(path, join(prefix, ".marin")):
        reason = f"is a folder of control files below the prefix {prefix!r}"
    else:
        return
    raise StoreError(f"{path!r} {reason}, expected a folder of the output's own. Give another output path.")


def make_folder(path: str) -> None:
    """Make the folder of an output's data; a bucket has none."""
    if is_local(path):
        make_folders(absolute(path))


def find_leftovers(path: str, *, attempted: bool) -> Leftovers:
    """List the leftovers of earlier attempts in the folder of the data. Raises StoreError for data that no attempt
    explains.

    `attempted`: an attempt has begun before. One of Marin's leaves no mark, but a status.
    """
    leftovers = _on_disk(path) if is_local(path) else _in_bucket(path)
    if leftovers.names and not attempted:
        raise StoreError(
            f"{path!r} holds {leftovers.names[0]!r} and no mark of an attempt, so it is not touched. "
            "Move those files to another place, or give the step another name."
        )
    if (inside := _output_inside(path, leftovers)) is not None:
        raise StoreError(
            f"{path!r} has the output of another step inside, {inside!r}, so its files are not touched. Move that "
            "output to another place, or give one of the steps another output path."
        )
    return leftovers


def move_aside(path: str, leftovers: Leftovers, whose: str, held: lease.Lease) -> None:
    """Move the leftovers to `.marin/aside/<whose>`: the number of an attempt, or "<attempt>-<try>". Raises
    LeaseLostError if the lease is lost."""
    aside = join(path, ".marin/aside", whose)
    if is_local(path):
        for name in leftovers.names:
            held.check()
            move(join(path, name), join(aside, os.path.basename(name)))
            fault_points.reach("leftovers half moved")
        return

    def move_object(file: StoredFile) -> None:
        held.check()
        _copy(file.path, join(aside, file.name.removeprefix(".marin/")))
        try:
            control.delete(file.path, expected=file.stamp)
        except ConflictError:
            return  # a newer attempt has written it, or an earlier try of this removal succeeded
        fault_points.reach("leftovers half moved")

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        list(pool.map(move_object, leftovers.objects))


def remove_temporaries(path: str) -> None:
    """Remove control files that a killed process had half written. A bucket never shows a part of an upload."""
    if not is_local(path):
        return
    for folder in (join(path, name) for name in CONTROL_FOLDERS):
        place = absolute(folder)
        if not os.path.isdir(place):
            continue
        with locked(place):
            for name in os.listdir(place):
                if name.startswith(".") and name.endswith(TEMPORARY_SUFFIX):
                    remove(join(folder, name))


def _on_disk(path: str) -> Leftovers:
    folder = absolute(path)
    kept = [name for name in os.listdir(folder) if name not in _CONTROL]
    noted = [SHARDS] if os.path.exists(join(folder, SHARDS)) else []
    return Leftovers(names=tuple(sorted(kept + noted)))


def _in_bucket(path: str) -> Leftovers:
    try:
        files = stored_files(path, hidden=True)
    except FileNotFoundError:  # a bucket has no folders, only names
        return Leftovers(names=())
    objects = tuple(file for file in files if _is_leftover(file.name))
    names = {SHARDS if file.name.startswith(".marin/") else file.name.partition("/")[0] for file in objects}
    return Leftovers(names=tuple(sorted(names)), objects=objects)


def _output_inside(path: str, leftovers: Leftovers) -> str | None:
    """The path of another output below this one, by its status."""
    if not is_local(path):
        inside = (file.path for file in leftovers.objects if file.name.rpartition("/")[2] == status.NAME)
        return next((name.rpartition("/")[0] for name in inside), None)
    for folder in (join(absolute(path), name) for name in leftovers.names if name != SHARDS):
        for below, _, files in os.walk(folder):
            if status.NAME in files:
                return below
    return None


def _is_leftover(name: str) -> bool:
    return name.startswith(f"{SHARDS}/") or name.partition("/")[0] not in _CONTROL


def _copy(path: str, target: str) -> None:
    """Copy within one bucket, by the store itself. Do nothing if the object is gone."""
    (fs, source), (_, aim) = filesystem_of(path), filesystem_of(target)
    try:
        fs.cp_file(source, aim)
    except FileNotFoundError:
        return
