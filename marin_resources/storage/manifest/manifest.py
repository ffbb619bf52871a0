"""`.marin/manifest.json`: every data file of a finished output with its size and its checksum.

Control files (whatever begins with a dot, or lies in a folder that does) and logs are left out. Files of timings
differ between runs that do the same: they are listed, so that a lost one is missed, and the digest leaves them out.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import fsspec

from marin_resources.storage.control import control
from marin_resources.storage.filesystem import filesystem_of
from marin_resources.storage.manifest.bytes_progress import BytesProgress
from marin_resources.storage.manifest.checksum import CRC32C, MD5, read_checksum, stored_checksum
from marin_resources.storage.manifest.largest_first import map_largest_first, read_threads
from marin_resources.storage.paths import join

NAME = ".marin/manifest.json"
FORMAT_VERSION = 2
COMMITTED = "committed"
LOGS = ("*.log",)
"""Names of files that are no data: they may grow after the output is complete."""
TIMINGS = ("metrics.jsonl", "eval_metrics.jsonl", "report.html")
"""Names of files that hold seconds or rates: of training, of Levanter's evaluations, and of the report."""

log = logging.getLogger(__name__)


class ManifestError(ValueError):
    """A manifest that cannot be read: one sentence with its path."""


@dataclass(frozen=True, kw_only=True, order=True)
class Entry:
    """One data file."""

    name: str
    """Its path below the output."""
    size: int
    checksum: str | None = None
    """ "crc32c:<base64>" or "md5:<hex>"; None in manifests of format 1, and where it was not asked for."""
    timing: bool = False
    """Whether it is one of those that differ between runs that do the same."""

    def to_json(self) -> dict[str, Any]:
        told = {"name": self.name, "size": self.size, "checksum": self.checksum}
        return {**told, "timing": True} if self.timing else told


@dataclass(frozen=True, kw_only=True)
class Manifest:
    entries: tuple[Entry, ...]
    """Sorted by name."""

    @property
    def files(self) -> tuple[tuple[str, int], ...]:
        """(name, bytes) of each: what can be compared without reading a byte."""
        return tuple((entry.name, entry.size) for entry in self.entries)

    @cached_property
    def bytes(self) -> int:
        return sum(entry.size for entry in self.entries)

    @cached_property
    def digest(self) -> str:
        """sha256 over names, sizes and checksums; without checksums over names and sizes, as format 1 has it."""
        if all(entry.checksum is None for entry in self.entries):
            return _sha256(self.files)
        return _sha256([(e.name, e.size, e.checksum) for e in self.entries if not e.timing])

    def summary(self) -> dict[str, Any]:
        return {"files": len(self.entries), "bytes": self.bytes, "digest": self.digest}

    def to_json(self) -> dict[str, Any]:
        """The summary, and the entries."""
        return {**self.summary(), "entries": [entry.to_json() for entry in self.entries]}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Manifest:
        """Of format 1 or 2; what else stands there is not looked at."""
        found = (
            Entry(name=e["name"], size=e["size"], checksum=e.get("checksum"), timing=e.get("timing", False))
            for e in value["entries"]
        )
        return Manifest(entries=tuple(sorted(found, key=lambda entry: entry.name)))


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFile:
    """A data file as it lies in its store now."""

    stored: str
    """Its path as the store spells it."""
    entry: Entry
    """With the checksum that the store itself has of it, if it has one."""


def take_manifest(output_path: str, *, checksums: bool = True, say: Callable[[str], None] = log.info) -> Manifest:
    """The manifest of what lies below `output_path` now.

    Bytes are read only where the store has no checksum of its own: on a disk, and on S3 of what was uploaded in parts.
    Without `checksums` no byte is read, and entries may be without. `say` is told of the progress of long work.
    """
    fs, found = find_data(output_path)
    if not checksums:
        return Manifest(entries=tuple(file.entry for file in found))
    trusted = _tags_can_be_trusted(fs, found)
    unknown = [file for file in found if file.entry.checksum is None or not trusted]
    progress = BytesProgress(f"checksums of {output_path}", sum(file.entry.size for file in unknown), say)
    computed = map_largest_first(
        lambda file: read_checksum(fs, file.stored, CRC32C, progress.advance),
        unknown,
        size=lambda file: file.entry.size,
        threads=read_threads([output_path]),
    )
    by_name = {file.entry.name: checksum for file, checksum in zip(unknown, computed, strict=True)}
    entries = (replace(f.entry, checksum=by_name.get(f.entry.name, f.entry.checksum)) for f in found)
    return Manifest(entries=tuple(entries))


def read_manifest(output_path: str) -> Manifest | None:
    """The manifest that was published with the output; None if there is none: not published yet, or Marin's.

    Raises ManifestError for one that is damaged, or of a newer format than this software knows.
    """
    path = join(output_path, NAME)
    found = control.read(path)
    return None if found is None else parse_manifest(found.data, path)


def parse_manifest(data: bytes, path: str) -> Manifest | None:
    """What a manifest's file says: None if it only says that somebody is at work. Raises ManifestError."""
    try:
        value = json.loads(data)
        version = value["format_version"]
        if version > FORMAT_VERSION:
            raise ManifestError(
                f"The manifest {path!r} has format version {version!r} and this software knows up to {FORMAT_VERSION}. "
                "Update this checkout."
            )
        if version > 1 and value["state"] != COMMITTED:
            return None
        manifest = Manifest.from_json(value)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path!r} is no manifest ({error!r}). It is damaged; make the output anew.") from error
    if value.get("digest", manifest.digest) != manifest.digest:
        raise ManifestError(
            f"The entries of the manifest {path!r} have the digest {manifest.digest!r}, expected {value['digest']!r} "
            "as stands there. It is damaged; make the output anew."
        )
    return manifest


def find_data(output_path: str) -> tuple[fsspec.AbstractFileSystem, list[DataFile]]:
    """The store, and every data file below `output_path` by name: what a manifest covers."""
    fs, root = filesystem_of(output_path)
    start = len(root.rstrip("/")) + 1
    files = (
        DataFile(stored=stored, entry=_entry(name, info))
        for stored, info in fs.find(root, detail=True).items()
        if info["type"] != "directory" and is_data(name := stored[start:])
    )
    return fs, sorted(files, key=lambda file: file.entry.name)


def is_data(name: str) -> bool:
    """Whether a manifest lists files of this name. Those of format 1 list logs too."""
    return not any(part.startswith(".") for part in name.split("/")) and not _is_one_of(name, LOGS)


def _entry(name: str, info: Mapping[str, Any]) -> Entry:
    timing = _is_one_of(name, TIMINGS)
    return Entry(name=name, size=int(info["size"]), checksum=stored_checksum(info), timing=timing)


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.rpartition("/")[2], pattern) for pattern in patterns)


def _tags_can_be_trusted(fs: fsspec.AbstractFileSystem, files: Sequence[DataFile]) -> bool:
    """Whether S3's entity tags are md5 sums here, tried on the smallest file. With KMS keys they are not."""
    tagged = [file for file in files if (file.entry.checksum or "").startswith(f"{MD5}:")]
    if not tagged:
        return True
    smallest = min(tagged, key=lambda file: file.entry.size)
    return read_checksum(fs, smallest.stored, MD5) == smallest.entry.checksum


def _sha256(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
