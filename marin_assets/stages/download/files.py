"""Copy files of any store, byte for byte.

In:  a URL or path of a file, a glob, or a folder, in any store that fsspec knows ("gs://…", "https://…", "/data/raw").
Out: the files under the same relative names, and `checksums.json` with the size and SHA-256 of each. While the stage
     runs, `.checksums/` holds the checksum of each finished file; such a file is not copied again.

A file that is truncated, that changes during the copy, or that has an unexpected checksum is an error and does not
appear in the output. Names that begin with a dot are left out, and so are empty objects that stand for a folder of a
bucket ("raw/sub/").
"""

from __future__ import annotations

import glob
import hashlib
import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from marin_assets.step.values import THIS_OUTPUT_PATH, as_glob, versioned
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import StoredFile, exists, open_atomic, read_json, write_json
from marin_resources.storage.filesystems.disk_listing import data_files, require_file, require_target
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import is_local, join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import fsspec

KINDS = ("fsspec",)

CHECKSUMS = "checksums.json"
ESCAPED = re.compile(r"\[([*?[])\]")
"""A letter that stands for itself in a glob, as `glob.escape` writes it."""
BLOCK_BYTES = 4 * 2**20
MARKS = ("generation", "etag", "content-md5", "last-modified", "lastmodified", "updated", "mtime", "created")
"""Fields of a store's file information that change when the file changes, the most reliable first."""


class SourceError(MarinError, ValueError):
    """A source that differs from its config or its listing: one sentence with the file and both values."""


@dataclass(frozen=True, kw_only=True)
class DownloadFilesConfig:
    source: str
    """URL or path of a file, a glob ("gs://bucket/a/*.jsonl.zst") or a folder. Wrap it in versioned()."""
    output_path: str = THIS_OUTPUT_PATH
    expected_sha256: dict[str, str] = field(default_factory=lambda: versioned({}))
    """SHA-256 in hexadecimal by relative name, for the files whose checksum is known beforehand."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_glob(self.source))


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """One file to copy: a shard of the work."""

    source: str
    target: str
    checksum_path: str
    size_bytes: int | None
    """The listed size; None if the store does not report it."""
    mark: str
    """The listed mark; see `mark_of`."""
    expected_sha256: str | None

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        name = self.source.rpartition("/")[2]
        return (StoredFile(path=self.source, name=name, size_bytes=self.size_bytes or 0, stamp=self.mark),)


def download_files(config: DownloadFilesConfig) -> dict[str, int | float | str]:
    """Copy files from a URL, a glob or a folder, and record their sizes and checksums.

    Returns files, bytes, and sha256, the digest of all names and checksums. Raises SourceError for a source that
    differs from its config or listing, FileNotFoundError for a source without files.
    """
    infos = list_source(config.source)
    if CHECKSUMS in infos:
        raise SourceError(f"{config.source!r} has a file {CHECKSUMS!r}, a name reserved for the output. Rename it.")
    missing = sorted(set(config.expected_sha256) - set(infos))
    if missing:
        raise SourceError(f"expected_sha256 names {missing[0]!r}, which is not in {config.source!r}. Correct the name.")
    files = [source_file(config, name, info) for name, info in sorted(infos.items())]
    counts = map_shards(copy_file, files, output_path=config.output_path)
    return {**counts, "sha256": write_checksums(config.output_path, dict(zip(sorted(infos), files, strict=True)))}


def write_checksums(output_path: str, files: Mapping[str, SourceFile]) -> str:
    """Write checksums.json of the copied files, by name. Return the digest of its names and checksums."""
    checksums = [{"name": name, **read_json(file.checksum_path)["checksum"]} for name, file in files.items()]
    write_json(join(output_path, CHECKSUMS), {"format_version": 1, "files": checksums})
    listing = "".join(f"{row['sha256']}  {row['name']}\n" for row in checksums)  # as sha256sum prints it
    return hashlib.sha256(listing.encode()).hexdigest()


def list_source(source: str) -> dict[str, dict[str, Any]]:
    """Return the store's information of each file, by its name relative to the folder or the fixed part of a glob."""
    fs, root = filesystem_of(source)
    fs.invalidate_cache()
    web = "://" in root  # https: "?" is not a wildcard, and fs.isdir would read the whole file
    folder, pattern = _glob_of(source, root, "*[{" if web else "*?[{")
    if folder is None:
        root = _literal(pattern)
    # Letters of a name may be wildcards, unless they are escaped.
    if folder is not None and (web or ESCAPED.search(source) or not fs.exists(root)):
        infos = fs.glob(pattern, detail=True)
    elif root.endswith("/") if web else fs.isdir(root):
        folder, infos = root.rstrip("/"), _below(fs, source, root)
    elif fs.exists(root):
        folder, infos = posixpath.dirname(root), {root: fs.info(root)}
    else:
        refused = ", or its server refuses to answer without the user and password of ~/.netrc" if web else ""
        raise FileNotFoundError(f"{source!r} does not exist{refused}. Expected a file, a folder or a glob.")
    by_name = {}
    for path, info in infos.items():
        name = path.removeprefix(folder).lstrip("/").partition("?" if web else "\0")[0]
        if is_local(source) and info["type"] == "other":  # a link, of which a glob reports no more
            require_target(path)
            require_file(path, os.stat(path))
            info = fs.info(path)
        if _stands_for_folder(source, path, name, info):
            continue
        if info["type"] == "file" and not any(part.startswith(".") for part in name.split("/")):
            by_name[name] = info if info.get("size") is not None else fs.info(path)
    if not by_name:
        raise FileNotFoundError(f"{source!r} has no files. Expected at least one whose name does not begin with a dot.")
    return by_name


def _stands_for_folder(source: str, path: str, name: str, info: dict[str, Any]) -> bool:
    """Whether it is an object without content that stands for a folder of a bucket, such as "raw/" or "raw/sub/".

    Raises SourceError for one with content: no file can have its name.
    """
    if is_local(source) or "://" in path or (name and not path.endswith("/")):  # of https it is a page
        return False
    if info["type"] == "file" and info.get("size"):
        raise SourceError(
            f"{source!r} has the object {path!r} with {info['size']} bytes, whose name is that of a folder, expected "
            "names of files. Rename it in the bucket."
        )
    return True


def _glob_of(source: str, root: str, wildcards: str) -> tuple[str | None, str]:
    """The fixed folder of a glob, None without wildcards; and the glob."""
    here = os.getcwd() if is_local(source) and not source.startswith(("/", "~", "file:")) else ""
    pattern = glob.escape(here) + root[len(here) :]  # what a relative path is relative to is no glob
    masked = ESCAPED.sub("   ", pattern)  # as long as the pattern
    first = min((masked.index(wildcard) for wildcard in wildcards if wildcard in masked), default=None)
    return None if first is None else posixpath.dirname(_literal(pattern[:first])), pattern


def _literal(pattern: str) -> str:
    return ESCAPED.sub(r"\1", pattern)


def _below(fs: fsspec.AbstractFileSystem, source: str, root: str) -> dict[str, dict[str, Any]]:
    """Return the information of each file below a folder; on a disk, below symlinks to folders too."""
    if is_local(source):
        return {path: fs.info(path) for path, _ in data_files(root)}
    infos: dict[str, dict[str, Any]] = fs.find(root, detail=True)
    return infos


def source_file(config: DownloadFilesConfig, name: str, info: dict[str, Any]) -> SourceFile:
    fs, _ = filesystem_of(config.source)
    return SourceFile(
        source=fs.unstrip_protocol(info["name"]),
        target=join(config.output_path, name),
        checksum_path=join(config.output_path, ".checksums", f"{name}.json"),
        size_bytes=info.get("size"),
        mark=mark_of(info),
        expected_sha256=config.expected_sha256.get(name),
    )


def mark_of(info: dict[str, Any]) -> str:
    """Return a string that changes when the file changes: the first of MARKS that the store reports; "" if none."""
    reported = {key.lower(): value for key, value in info.items()}
    return next((f"{mark} {reported[mark]}" for mark in MARKS if reported.get(mark) is not None), "")


def copy_file(file: SourceFile) -> dict[str, int]:
    """Copy one file, unless its copy is complete. Returns files and bytes. Raises SourceError."""
    if exists(file.checksum_path) and exists(file.target):
        entry = read_json(file.checksum_path)
        fs, target = filesystem_of(file.target)
        same_source = (entry["source_mark"], entry["source_size"]) == (file.mark, file.size_bytes)
        if same_source and fs.size(target) == entry["checksum"]["size"]:
            check_expected(file, entry["checksum"]["sha256"])
            return {"files": 1, "bytes": entry["checksum"]["size"]}
    before = state_of(file.source)
    with open_atomic(file.target) as target_file, open_source(file.source) as source_file:
        size, sha256 = copy_bytes(source_file, target_file)
        check_unchanged(file, size, before, state_of(file.source))
        check_expected(file, sha256)
    entry = {"source_mark": file.mark, "source_size": file.size_bytes, "checksum": {"size": size, "sha256": sha256}}
    write_json(file.checksum_path, entry)
    return {"files": 1, "bytes": size}


def state_of(source: str) -> tuple[str, int | None]:
    """Return the mark and size of a file now. A listing may format the same mark differently."""
    fs, path = filesystem_of(source)
    fs.invalidate_cache()
    info = fs.info(path)
    return mark_of(info), info.get("size")


def open_source(source: str) -> IO[bytes]:
    """Open the file as one stream of bytes."""
    if not source.startswith(("http://", "https://")):
        fs, path = filesystem_of(source)
        return fs.open(path, "rb")
    import aiohttp
    import fsspec

    # Without range requests, which fsspec sends by default: from a server that ignores ranges and truncates a file, it
    # assembles a file of the right size with wrong content. Without compression: the sizes would differ.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=60, sock_read=60)  # the default total is 5 minutes
    web = {"timeout": timeout, "headers": {"Accept-Encoding": "identity"}, "trust_env": True}  # as filesystem_of
    return fsspec.filesystem("http", client_kwargs=web).open(source, "rb", block_size=0)


def copy_bytes(source: IO[bytes], target: IO[bytes]) -> tuple[int, str]:
    """Copy to the end. Return the number of bytes and their SHA-256 in hexadecimal."""
    digest, size = hashlib.sha256(), 0
    while block := source.read(BLOCK_BYTES):
        target.write(block)
        digest.update(block)
        size += len(block)
    return size, digest.hexdigest()


def check_unchanged(file: SourceFile, copied_bytes: int, before: tuple[str, Any], after: tuple[str, Any]) -> None:
    """Raise SourceError if the copy differs from the listed size, or the state before from the state after."""
    if file.size_bytes is not None and copied_bytes != file.size_bytes:
        raise SourceError(
            f"{file.source!r} was listed with {file.size_bytes} bytes, and {copied_bytes} were read. "
            "It was truncated, or is still being written. Run the step again when it is complete."
        )
    if before != after:
        raise SourceError(
            f"{file.source!r} changed during the copy, from {before!r} to {after!r}. "
            "Run the step again when nothing writes to it."
        )


def check_expected(file: SourceFile, sha256: str) -> None:
    """Raise SourceError if `expected_sha256` names another checksum."""
    if file.expected_sha256 is not None and sha256 != file.expected_sha256.lower():
        raise SourceError(
            f"{file.source!r} has the SHA-256 {sha256!r}, expected {file.expected_sha256!r}. "
            "Correct expected_sha256 or the source."
        )
