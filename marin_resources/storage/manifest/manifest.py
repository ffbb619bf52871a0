"""`.marin/manifest.json`: every data file of a complete output with its size and its checksum.

Control files (names that begin with a dot, and files in such folders) and logs are left out. Files of timings differ
between identical runs: the manifest lists them, so that a lost one is found, and its digest leaves them out.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

from marin_resources.storage.control import control
from marin_resources.storage.manifest.bytes_progress import BytesProgress
from marin_resources.storage.manifest.checksum import CRC32C, MD5, read_checksum
from marin_resources.storage.manifest.largest_first import map_largest_first, read_threads
from marin_resources.storage.manifest.listing import EMPTY_FOLDER, Listed, is_control, list_output
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.versioned_json import ControlFileError, VersionedJson

if TYPE_CHECKING:
    import fsspec

NAME = ".marin/manifest.json"
FORMAT_VERSION = 2
CLAIMED, COMMITTED = "claimed", "committed"
LOGS = ("*.log",)
"""Patterns of files that are not data: they may grow after the output is complete."""
TIMINGS = ("metrics.jsonl", "eval_metrics.jsonl", "report.html")
"""Patterns of files that hold seconds or rates: of training, of Levanter's evaluations, and of the report."""

log = logging.getLogger(__name__)


class IrregularFileError(MarinError, ValueError):
    """A file of an output that cannot be published: one sentence with its path, what it is, and what to do."""


class ManifestError(ControlFileError):
    """A manifest that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="manifest",
    newest=FORMAT_VERSION,
    error=ManifestError,
    if_damaged="The file is damaged; compute the output again.",
)


@dataclass(frozen=True, kw_only=True, order=True)
class Entry:
    """One data file."""

    name: str
    """Path of the file below the output."""
    size: int
    checksum: str | None = None
    """ "crc32c:<base64>" or "md5:<hex>"; None in manifests of format 1, and if it was not requested."""
    timing: bool = False
    """Whether it is a file of timings, which differs between identical runs."""

    def to_json(self) -> dict[str, Any]:
        fields = {"name": self.name, "size": self.size, "checksum": self.checksum}
        return {**fields, "timing": True} if self.timing else fields


@dataclass(frozen=True, kw_only=True)
class Manifest:
    entries: tuple[Entry, ...]
    """Sorted by name."""

    @property
    def files(self) -> tuple[tuple[str, int], ...]:
        """(name, bytes) of each file: comparable without reading a file."""
        return tuple((entry.name, entry.size) for entry in self.entries)

    @cached_property
    def bytes(self) -> int:
        return sum(entry.size for entry in self.entries)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names, sizes and checksums; without checksums over names and sizes, as in format 1."""
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
        """Read format 1 or 2; other fields are ignored. Raises ValueError, KeyError, TypeError or AttributeError."""
        entries = (
            Entry(name=e["name"], size=e["size"], checksum=e.get("checksum"), timing=e.get("timing", False))
            for e in value["entries"]
        )
        return Manifest(entries=tuple(sorted(map(_require_types, entries), key=lambda entry: entry.name)))


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFile:
    """A data file as its store lists it now."""

    stored: str
    """Path of the file in the store's spelling."""
    entry: Entry
    """With the store's own checksum, if it has one."""


def take_manifest(output_path: str, *, checksums: bool = True, report: Callable[[str], None] = log.info) -> Manifest:
    """The manifest of the data files that exist below `output_path` now.

    Files are read only if the store has no checksum of its own: on a disk, and on S3 if they were uploaded in parts.
    Without `checksums` no file is read, and entries may lack one. `report` gets the progress of long work.

    Raises IrregularFileError for a file that is not regular, and for a link that leads out of the data of the output.
    """
    fs, listed = list_output(output_path)
    refuse_irregular(output_path, listed)
    files = data_of(listed)
    if not checksums:
        return Manifest(entries=tuple(file.entry for file in files))
    trusted = _tags_can_be_trusted(fs, files)
    unknown = [file for file in files if file.entry.checksum is None or not trusted]
    progress = BytesProgress(f"checksums of {output_path}", sum(file.entry.size for file in unknown), report)
    computed = map_largest_first(
        lambda file: read_checksum(fs, file.stored, CRC32C, progress.advance),
        unknown,
        size=lambda file: file.entry.size,
        threads=read_threads([output_path]),
    )
    by_name = {file.entry.name: checksum for file, checksum in zip(unknown, computed, strict=True)}
    entries = (replace(f.entry, checksum=by_name.get(f.entry.name, f.entry.checksum)) for f in files)
    return Manifest(entries=tuple(entries))


def read_manifest(output_path: str) -> Manifest | None:
    """The manifest that was published with the output; None if it has none: not published yet, or Marin's.

    Raises ControlFileError if it is damaged, or of a newer format than this software knows.
    """
    path = join(output_path, NAME)
    snapshot = control.read(path)
    return None if snapshot is None else parse_manifest(snapshot.data, path)


def parse_manifest(data: bytes, path: str) -> Manifest | None:
    """The manifest in a file; None if an attempt has claimed the output and not published. Raises ManifestError."""
    value = FORMAT.parse(data, path)
    try:
        if value["format_version"] > 1 and value["state"] != COMMITTED:
            if value["state"] == CLAIMED:
                return None
            raise ValueError(f"the state {value['state']!r}, expected {CLAIMED!r} or {COMMITTED!r}")
        manifest = Manifest.from_json(value)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FORMAT.invalid(path, error) from error
    if value.get("digest", manifest.digest) != manifest.digest:
        recorded = f"expected {value['digest']!r} as recorded there"
        raise FORMAT.damaged(path, f"has entries with the digest {manifest.digest!r}, {recorded}")
    return manifest


def data_of(listed: Iterable[Listed]) -> list[DataFile]:
    """The regular data files of a listing: the files that a manifest covers."""
    return [
        DataFile(
            stored=file.stored,
            entry=Entry(name=file.name, size=file.size, checksum=file.checksum, timing=_is_one_of(file.name, TIMINGS)),
        )
        for file in listed
        if is_data(file.name) and not file.irregular
    ]


def refuse_irregular(output_path: str, listed: Iterable[Listed]) -> None:
    """Raise IrregularFileError unless every data file is regular, or a relative link to a data file of the output."""
    for file in listed:
        if is_data(file.name) and (problem := _irregularity(file)):
            raise IrregularFileError(
                f"{join(output_path, file.name)!r} is {problem}. An output holds regular files, and relative links to "
                "its own data files: let the step's function write or copy a file there, or remove it."
            )


def is_data(name: str) -> bool:
    """Whether a manifest lists files of this name. Manifests of format 1 list logs too."""
    return not is_control(name) and not _is_one_of(name, LOGS)


def _irregularity(file: Listed) -> str:
    """The irregularity of a data file, as a phrase; "" for a regular file, a good link, and an empty folder."""
    if file.irregular:
        return file.irregular if file.irregular != EMPTY_FOLDER else ""
    if file.link is None:
        return ""
    shown = f"a symbolic link to {file.link!r}"
    if not os.path.isfile(file.stored):
        return f"{shown}, where no file is"
    if os.path.isabs(file.link):
        return f"{shown}, an absolute path, which is another file when the output is moved"
    root = os.path.realpath(file.stored.removesuffix(file.name))
    target = os.path.relpath(os.path.realpath(file.stored), root)
    if target.startswith("../"):
        return f"{shown}, outside of the output"
    return "" if is_data(target) else f"{shown}, which is not a data file"


def _require_types(entry: Entry) -> Entry:
    checksum, timing = entry.checksum, entry.timing
    right = isinstance(entry.name, str) and type(entry.size) is int and isinstance(timing, bool)
    if not (right and (checksum is None or isinstance(checksum, str))):
        raise TypeError(f"an entry with wrong types: {entry!r}")
    return entry


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.rpartition("/")[2], pattern) for pattern in patterns)


def _tags_can_be_trusted(fs: fsspec.AbstractFileSystem, files: Sequence[DataFile]) -> bool:
    """Whether S3's entity tags are md5 sums here, tested on the smallest file. With KMS keys they are not."""
    tagged = [file for file in files if (file.entry.checksum or "").startswith(f"{MD5}:")]
    if not tagged:
        return True
    smallest = min(tagged, key=lambda file: file.entry.size)
    return read_checksum(fs, smallest.stored, MD5) == smallest.entry.checksum


def _sha256(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
