"""The disks of this machine that outputs, runs, spooled files and Ray's objects are written to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from marin_resources.configuration.settings import dagster_home, default_prefix
from marin_resources.doctor.finding import Finding, ok, warning, wrong
from marin_resources.doctor.folders import why_unusable
from marin_resources.storage.filesystems.rights import is_writable, nearest_folder
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.paths import absolute, is_local

SUBJECT = "disks"
PREFIX = "prefix"
NEEDED_BYTES = 2**30
SCARCE_BYTES = 10 * 2**30
RAY_FULL = 0.95
"""Share of a disk in use at which Ray stops to create objects: its local_fs_capacity_threshold."""
SCARCE_INODES = 1000


@dataclass(frozen=True, kw_only=True)
class Disk:
    """The state of one disk."""

    uses: tuple[str, ...]
    """The kinds of data that are written to it."""
    folder: str
    free_bytes: int
    total_bytes: int
    free_inodes: int | None
    """None: the file system does not count them."""
    writable: bool
    for_ray: bool

    def describe(self) -> str:
        return f"{self.folder} ({', '.join(self.uses)})"


def look() -> Iterator[Finding]:
    given = os.environ.get("TMPDIR", "")
    if given and (why := why_unusable(given) or ("" if os.path.isdir(given) else f"{given!r} does not exist")):
        yield wrong(
            SUBJECT,
            f"TMPDIR is {given!r}, and {why}: what a step starts has no place for temporary files. Create the folder, "
            "or unset TMPDIR.",
        )
    for disk in disks():
        yield assess(disk)


def disks() -> list[Disk]:
    """The disks of the folders in use; folders on one disk are one."""
    temporary = tempfile.gettempdir()
    places = {"temporary files": temporary, "Ray": "/tmp", "DAGSTER_HOME": dagster_home()}
    if is_local(prefix := default_prefix()):
        places = {PREFIX: absolute(prefix), **places}
    by_device: dict[int, dict[str, str]] = {}
    for use, place in places.items():
        folder = nearest_folder(place)
        by_device.setdefault(os.stat(folder).st_dev, {})[use] = folder
    return [_disk(uses) for uses in by_device.values()]


def assess(disk: Disk) -> Finding:
    """The finding for the state of a disk."""
    free = readable_bytes(disk.free_bytes)
    if not disk.writable:
        return wrong(SUBJECT, f"{disk.describe()} cannot be written by this user. Choose another.")
    if disk.free_bytes < NEEDED_BYTES:
        return wrong(SUBJECT, f"{disk.describe()} is full: {free} free. Make room: 1 GiB at least, 10 GiB for work.")
    if disk.free_inodes is not None and disk.free_inodes < SCARCE_INODES:
        return wrong(SUBJECT, f"{disk.describe()} has room for {disk.free_inodes} more files. Remove small files.")
    used = 1 - disk.free_bytes / disk.total_bytes
    if disk.for_ray and used > RAY_FULL:
        return wrong(
            SUBJECT,
            f"{disk.describe()} is {used:.0%} full, {free} free: Ray creates no objects above {RAY_FULL:.0%}. Make "
            "room.",
        )
    if disk.free_bytes < SCARCE_BYTES:
        return warning(SUBJECT, f"{disk.describe()} has {free} free. Make room before a large step.")
    return ok(SUBJECT, f"{disk.describe()}: {free} free")


def _disk(uses: dict[str, str]) -> Disk:
    folder = next(iter(uses.values()))
    statistics = os.statvfs(folder)
    return Disk(
        uses=tuple(uses),
        folder=folder,
        free_bytes=statistics.f_bavail * statistics.f_frsize,
        total_bytes=statistics.f_blocks * statistics.f_frsize,
        free_inodes=statistics.f_favail if statistics.f_files else None,
        writable=all(is_writable(place) for use, place in uses.items() if use != PREFIX),  # `prefix.py` looks at that
        for_ray="Ray" in uses,
    )
