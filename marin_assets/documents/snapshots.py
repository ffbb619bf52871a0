"""Snapshots: a file with the partitions of a step that were complete at a moment. Readers of the snapshot read these.

    partitions.json    {"format_version": 1, "partitions":
                        [{"key": "2026-01", "path": "../../../tokenized/web-3f2a1c/2026-01", "digest": "…"}]}

Paths are relative to the snapshot's folder where both are in one store, so a prefix can be moved. The digest is that of
the partition's manifest. A partition that is adopted has "own_path" too: the path of its record.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from marin_resources.storage.files import exists, read_bytes, write_json
from marin_resources.storage.output.record import read_record
from marin_resources.storage.paths import join, without_scheme
from marin_resources.storage.transfer.regions import Regions, declared_regions
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

NAME = "partitions.json"
FORMAT_VERSION = 1
LOOKS_AT_ONCE = 32


class SnapshotError(ControlFileError):
    """A snapshot that cannot be read, or whose partitions have changed: one sentence with its path."""


FORMAT = VersionedJson(
    kind="snapshot",
    newest=FORMAT_VERSION,
    error=SnapshotError,
    shape={"partitions": Required([{"key": Required(str), "path": Required(str), "digest": str, "own_path": str}])},
)


@dataclass(frozen=True, kw_only=True)
class SnapshotPartition:
    """A partition that was complete."""

    key: str
    path: str
    digest: str | None
    """Digest of the partition's manifest; None for an output without a manifest."""
    own_path: str | None = None
    """The path of its record, if its data are adopted from elsewhere."""


def write_snapshot(folder: str, partitions: Sequence[SnapshotPartition]) -> None:
    """Write the list of these partitions."""
    rows = [
        {
            "key": partition.key,
            "path": _relative(partition.path, folder),
            "digest": partition.digest,
            **({} if partition.own_path is None else {"own_path": _relative(partition.own_path, folder)}),
        }
        for partition in partitions
    ]
    write_json(join(folder, NAME), {"format_version": FORMAT_VERSION, "partitions": rows})


def is_snapshot(folder: str) -> bool:
    """Whether the output at `folder` is a snapshot."""
    return exists(join(folder, NAME))


def read_snapshot(folder: str) -> dict[str, SnapshotPartition]:
    """The partitions of a snapshot by key, in its order. Raises FileNotFoundError and SnapshotError."""
    path = join(folder, NAME)
    snapshot = FORMAT.parse(read_bytes(path), path)
    return {
        row["key"]: SnapshotPartition(
            key=row["key"],
            path=_absolute(row["path"], folder),
            digest=row.get("digest"),
            own_path=_absolute(row["own_path"], folder) if row.get("own_path") else None,
        )
        for row in snapshot["partitions"]
    }


def read_unchanged_snapshot(folder: str) -> dict[str, SnapshotPartition]:
    """The partitions of a snapshot by key, if each has the manifest that it had when the snapshot was taken. The path
    of one in another region is a `mirror://` path.

    Raises SnapshotError, which names the first that has not, FileNotFoundError and ControlFileError.
    """
    partitions = read_snapshot(folder)
    with ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
        records = pool.map(lambda partition: read_record(partition.own_path or partition.path), partitions.values())
        digests = [None if record is None else record.manifest.digest for record in records]
    for partition, digest in zip(partitions.values(), digests, strict=True):
        if digest != partition.digest:
            change = "is gone" if digest is None else "was computed again, with other files,"
            raise SnapshotError(
                f"The partition {partition.key!r} at {partition.path!r} {change} since the snapshot {folder!r} was "
                "taken. Take a new snapshot, under another key."
            )
    regions = declared_regions()
    return {key: replace(partition, path=_readable(partition.path, regions)) for key, partition in partitions.items()}


def _readable(path: str, regions: Regions) -> str:
    held = regions.holding(path)
    return path if held is None or held[0] == regions.local else f"mirror://{held[1]}"


def _relative(path: str, folder: str) -> str:
    """`path` relative to the folder, if both are in one store."""
    scheme, other = path.partition("://")[0], folder.partition("://")[0]
    if ("://" in path) != ("://" in folder) or ("://" in path and scheme != other):
        return path
    inside, start = without_scheme(path), without_scheme(folder)
    if inside.split("/")[0] != start.split("/")[0]:  # of another bucket
        return path
    return posixpath.relpath(inside, start)


def _absolute(path: str, folder: str) -> str:
    if path.startswith("/") or "://" in path:
        return path
    scheme, separator, inside = folder.rpartition("://")
    return scheme + separator + posixpath.normpath(posixpath.join(inside, path))
