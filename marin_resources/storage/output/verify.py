"""Compare the files of complete outputs with their published manifests.

In:  paths of outputs.   Out: a `Verification` for each. Nothing is written.

Names and sizes come from a listing and are compared for every file. Checksums are compared with the store's own
checksum of the object, where it has one (GCS always, S3 mostly), else with one computed from the bytes. `sample` is the
share of files whose bytes are read, from 0 to 1; `read` reads them even if the store has a checksum.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.manifest.bytes_progress import BytesProgress
from marin_resources.storage.manifest.checksum import ChecksumError, algorithm_of, read_checksum
from marin_resources.storage.manifest.largest_first import map_largest_first, read_threads
from marin_resources.storage.manifest.listing import EMPTY_FOLDER, Listed, list_output
from marin_resources.storage.manifest.manifest import (
    NAME,
    DataFile,
    Entry,
    Manifest,
    data_of,
    is_data,
    read_manifest,
)
from marin_resources.storage.output.commit import recorded
from marin_resources.storage.output.control_files import find_damaged
from marin_resources.storage.output.record import NAME as RECORD
from marin_resources.storage.output.record import read_record
from marin_resources.storage.output.status import NAME as STATUS
from marin_resources.storage.output.verification import Finding, Problem, Verification
from marin_resources.storage.paths import join
from marin_resources.types.output import Status
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ControlFileError

if TYPE_CHECKING:
    import fsspec

LIST_THREADS = 8
"""Outputs that are listed concurrently."""
OURS = ".marin/"
"""The folder that this software writes in each output, and Marin does not."""
NOTHING = "nothing"
NO_MANIFEST = "no manifest exists to compare with, as Marin writes none"
NO_CHECKSUMS = "only names and sizes were compared: the manifest has an older format without checksums"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """A file to read and compare."""

    path: str
    """Path of its output."""
    fs: fsspec.AbstractFileSystem
    file: DataFile
    expected: Entry


def verify_output(path: str, *, sample: float = 1.0, seed: int = 0, read: bool = False) -> Verification:
    """Verify one complete output."""
    return verify_outputs([path], sample=sample, seed=seed, read=read)[path]


def verify_listing(path: str, just_read: Record | None = None) -> Verification:
    """Compare the names and sizes of one output with its manifest, from one listing. No data file is read.

    `just_read`: the record of the complete output, if it was read a moment ago.
    """
    return _compare(path, sample=0.0, seed=0, read=False, control=False, just_read=just_read)[0]


def verify_outputs(
    paths: Iterable[str],
    *,
    sample: float = 1.0,
    seed: int = 0,
    read: bool = False,
    report: Callable[[str], None] = log.info,
) -> dict[str, Verification]:
    """Verify complete outputs, several at once and their files in threads. `report` gets the progress.

    One seed chooses the same files of the same output on every store. Raises UnavailableError if the store does not
    answer.
    """
    requested = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(LIST_THREADS) as pool:
        listed = list(pool.map(lambda path: _compare(path, sample, seed, read, control=True), requested))
    verifications = {verification.path: verification for verification, _ in listed}
    readings = [reading for _, of_output in listed for reading in of_output]
    progress = BytesProgress("read", sum(reading.expected.size for reading in readings), report)
    findings = map_largest_first(
        lambda reading: _compare_bytes(reading, progress),
        readings,
        size=lambda reading: reading.expected.size,
        threads=read_threads(requested),
    )
    for reading, finding in zip(readings, findings, strict=True):
        verifications[reading.path] = _with_reading(verifications[reading.path], reading.expected, finding)
    return verifications


def find_lost_statuses(paths: Iterable[str]) -> dict[str, Finding]:
    """Findings for outputs without a status whose commit object is committed (the status was lost) or damaged."""
    requested = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(LIST_THREADS) as pool:
        findings = zip(requested, pool.map(_lost_status, requested), strict=True)
    return {path: finding for path, finding in findings if finding is not None}


def _lost_status(path: str) -> Finding | None:
    try:
        committed = read_manifest(path) is not None
    except ControlFileError as error:
        return _unreadable(NAME, "a manifest", error)
    if not committed:
        return None
    expected = f"a status, as {join(path, NAME)!r} is committed; materialize the step to write it"
    return Finding(name=STATUS, problem=Problem.DAMAGED, expected=expected, found=NOTHING)


def _compare(
    path: str, sample: float, seed: int, read: bool, *, control: bool, just_read: Record | None = None
) -> tuple[Verification, list[_Reading]]:
    """The verification by listing alone, and the files to read. `control`: read the other control files too."""
    recorded, unreadable = _recorded(path) if not just_read else (just_read, ())
    try:
        fs, listed, data = _list(path, recorded.data_path or path)
    except UnavailableError:
        raise
    except OSError as error:  # of this output alone: a folder without rights
        return Verification(path=path, findings=(_unreadable("", "a folder", error),)), []
    manifest, wrong = _published(path, listed, recorded, unreadable)
    if control:
        wrong = (*wrong, *find_damaged(path, listed))
    if manifest is None:
        unverified = "" if any(finding.name == NAME for finding in wrong) else NO_MANIFEST
        return Verification(path=path, findings=wrong, unverified=unverified), []
    now = {file.entry.name: file for file in data_of(data)}
    irregular = {file.name: file.irregular for file in data if file.irregular not in ("", EMPTY_FOLDER)}
    manifest = Manifest(entries=tuple(entry for entry in manifest.entries if is_data(entry.name)))
    same = [entry for entry in manifest.entries if entry.name in now and now[entry.name].entry.size == entry.size]
    comparable = [entry for entry in same if entry.checksum is not None]
    settled = {e.name: e.size for e in comparable if not read and now[e.name].entry.checksum == e.checksum}
    chosen = _choose(manifest, sample, seed)
    to_read = [
        e for e in comparable if e.name not in settled and (e.name in chosen or _is_suspect(now[e.name].entry, e))
    ]
    verification = Verification(
        path=path,
        findings=tuple(sorted([*wrong, *_differences(manifest, now, irregular)])),
        files=len(manifest.entries),
        bytes=manifest.bytes,
        compared_files=len(settled),
        compared_bytes=sum(settled.values()),
        unverified=NO_CHECKSUMS if len(comparable) < len(same) else "",
    )
    return verification, [_Reading(path=path, fs=fs, file=now[e.name], expected=e) for e in to_read]


def _recorded(path: str) -> tuple[Record, tuple[Finding, ...]]:
    """The record, and the finding that it cannot be read."""
    try:
        record = read_record(path) or Record()
    except UnavailableError:
        raise
    except ControlFileError as error:
        return Record(), (_unreadable(RECORD, "a record", error),)
    if record.format_version is not None:
        return record, ()
    try:  # Marin rewrites the file at each start
        return recorded(path, Status.SUCCESS) or Record(), ()
    except UnavailableError:
        raise
    except ControlFileError:  # of the commit object, which `_published` reports
        return record, ()


def _list(path: str, data_path: str) -> tuple[fsspec.AbstractFileSystem, list[Listed], list[Listed]]:
    """The filesystem of the data, the files beside the record, and those beside the data: another region may have
    these."""
    fs, listed = list_output(path)
    if data_path == path:
        return fs, listed, listed
    fs, data = list_output(data_path)
    return fs, listed, data


def _published(
    path: str, listed: Iterable[Listed], recorded: Record, unreadable: tuple[Finding, ...]
) -> tuple[Manifest | None, tuple[Finding, ...]]:
    """The manifest, and its own findings: the record holds the manifest's digest."""
    try:
        manifest = read_manifest(path)
    except ControlFileError as error:
        return None, (_unreadable(NAME, "a manifest", error),)
    if unreadable:
        return manifest, unreadable
    digest = recorded.manifest.digest
    if digest is None and manifest is None and _has_lost_manifest({file.name for file in listed}):
        return None, (Finding(name=NAME, problem=Problem.MISSING, expected="a manifest", found=NOTHING),)
    if digest is None or (manifest is not None and manifest.digest == digest):
        return manifest, ()
    problem = Problem.MISSING if manifest is None else Problem.CORRUPTED
    actual = NOTHING if manifest is None else f"the digest {manifest.digest!r}"
    expected = f"a manifest with the digest {digest!r}, as recorded"
    return manifest, (Finding(name=NAME, problem=problem, expected=expected, found=actual),)


def _has_lost_manifest(names: Set[str]) -> bool:
    """Whether this software has written the output, and its manifest is gone. Where it only claimed the output and was
    killed, and Marin has completed it, the manifest exists, uncommitted."""
    return NAME not in names and any(name.startswith(OURS) for name in names)


def _differences(manifest: Manifest, now: Mapping[str, DataFile], irregular: Mapping[str, str]) -> Iterator[Finding]:
    """Findings by names and sizes, and what is no regular file, by name."""
    for entry in manifest.entries:
        expected = f"{entry.size} bytes"
        if entry.name in irregular:
            actual = irregular[entry.name]
            yield Finding(name=entry.name, problem=Problem.UNREADABLE, expected=expected, found=actual)
        elif entry.name not in now:
            yield Finding(name=entry.name, problem=Problem.MISSING, expected=expected, found=NOTHING)
        elif (size := now[entry.name].entry.size) != entry.size:
            yield Finding(name=entry.name, problem=Problem.RESIZED, expected=expected, found=f"{size} bytes")
    others = {name: phrase for name, phrase in irregular.items() if is_data(name)}
    for name in (now.keys() | others.keys()) - {entry.name for entry in manifest.entries}:
        actual = others.get(name) or f"{now[name].entry.size} bytes"
        yield Finding(name=name, problem=Problem.EXTRA, expected=NOTHING, found=actual)


def _choose(manifest: Manifest, sample: float, seed: int) -> frozenset[str]:
    """Names of the files to read: the share `sample` of them, rounded up."""
    names = [entry.name for entry in manifest.entries]
    return frozenset(random.Random(f"{seed}/{manifest.digest}").sample(names, math.ceil(sample * len(names))))


def _is_suspect(now: Entry, expected: Entry) -> bool:
    """Whether the store's checksum differs. Only the bytes are conclusive: not every entity tag is an md5 sum."""
    if now.checksum is None or expected.checksum is None:
        return False
    return now.checksum.partition(":")[0] == expected.checksum.partition(":")[0] and now.checksum != expected.checksum


def _compare_bytes(reading: _Reading, progress: BytesProgress) -> Finding | None:
    expected = reading.expected
    assert expected.checksum is not None
    try:
        now = read_checksum(reading.fs, reading.file.stored, algorithm_of(expected.checksum), progress.advance)
    except FileNotFoundError:
        size = f"{expected.size} bytes"
        return Finding(name=expected.name, problem=Problem.MISSING, expected=size, found=NOTHING)
    except (OSError, ChecksumError) as error:
        return _unreadable(expected.name, expected.checksum, error)
    if now == expected.checksum:
        return None
    return Finding(name=expected.name, problem=Problem.CORRUPTED, expected=expected.checksum, found=now)


def _unreadable(name: str, expected: str, error: Exception) -> Finding:
    actual = str(error) if isinstance(error, ControlFileError) else f"{type(error).__name__}: {error}"
    return Finding(name=name, problem=Problem.UNREADABLE, expected=expected, found=actual)


def _with_reading(verified: Verification, entry: Entry, finding: Finding | None) -> Verification:
    return replace(
        verified,
        findings=tuple(sorted([*verified.findings, finding])) if finding else verified.findings,
        compared_files=verified.compared_files + 1,
        compared_bytes=verified.compared_bytes + entry.size,
    )
