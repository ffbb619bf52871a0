"""Copy files of any store, byte for byte.

In:  a URL or path of a file, a glob, or a folder, in any store that fsspec knows ("gs://…", "https://…", "/data/raw").
Out: the files under the same relative names, and `checksums.json` with the size and SHA-256 of each. While the stage
     runs, `.checksums/` holds the checksum of each finished file, which is not copied again, and `.download/` the parts
     of the others, which are continued at their byte.

All bytes of a file are of one state of it: a file that changes during the copy, that is truncated, or that has an
unexpected checksum is an error and does not appear in the output. Names that begin with a dot are left out, and so are
empty objects that stand for a folder of a bucket ("raw/sub/").
"""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import posixpath
import re
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from marin_assets.stages.download.stores.access import StoreAccess, filesystem_for, is_web, require_usable
from marin_assets.stages.download.stores.checksum_files import expected_of, require_all
from marin_assets.stages.download.stores.remote import StoreRemote, comparable, reader_of
from marin_assets.stages.download.stores.source_file import (
    Expected,
    SourceError,
    SourceFile,
    mark_of,
    of_store,
)
from marin_assets.stages.download.web.faults import REASONS
from marin_assets.stages.download.web.tally import Tally
from marin_assets.stages.download.web.transfer import Transfer, remove_parts
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, as_glob, versioned
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import REQUESTS_AT_ONCE, read_json, write_json
from marin_resources.storage.filesystems.disk_listing import data_files, require_file, require_target
from marin_resources.storage.paths import StoreKind, is_local, join, kind_of
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import fsspec

KINDS = ("fsspec",)

CHECKSUMS = "checksums.json"
ROOM = "download"
"""The hidden folder of an output has its name."""
COUNTS = ("bytes_fetched", "requests", "retries")
ESCAPED = re.compile(r"\[([*?[])\]")
"""A letter that stands for itself in a glob, as `glob.escape` writes it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class DownloadFilesConfig:
    source: str
    """URL or path of a file, a glob ("gs://bucket/a/*.jsonl.zst") or a folder. Wrap it in versioned()."""
    output_path: str = THIS_OUTPUT_PATH
    expected_sha256: dict[str, str] = field(default_factory=lambda: versioned({}))
    """SHA-256 in hexadecimal by relative name, for the files whose checksum is known beforehand."""
    checksum_file: str | None = None
    """A file of checksums (`SHA256SUMS`, `sha1sums.txt`, `a.md5`), or a form with the name of a file in it:
    "https://a.org/data/{name}.md5"."""
    allow_unchecked: bool = False
    """Accept files that the file of checksums does not have. They are counted."""
    access: StoreAccess = field(default_factory=StoreAccess)
    """Rights and limits at the store. Not versioned."""

    def check_step(self, name: str, resources: Any) -> None:
        """Raise an error for what the stage would refuse."""
        check_config(self, lambda config: require_usable(config.access, config.source), name)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_glob(self.source))


def download_files(config: DownloadFilesConfig) -> dict[str, Any]:
    """Copy files from a URL, a glob or a folder, and record their sizes and checksums.

    Returns files, bytes, and sha256, the digest of all names and checksums; bytes_fetched, requests and retries of
    this attempt, and retries_<reason>; with a file of checksums, unchecked. Raises SourceError for a source that
    differs from its config or listing, FileNotFoundError for a source without files, AccessError.
    """
    require_usable(config.access, config.source)
    infos = list_source(config.source, config.access, config.output_path)
    if CHECKSUMS in infos:
        raise SourceError(f"{config.source!r} has a file {CHECKSUMS!r}, a name reserved for the output. Rename it.")
    missing = sorted(set(config.expected_sha256) - set(infos))
    if missing:
        raise SourceError(f"expected_sha256 names {missing[0]!r}, which is not in {config.source!r}. Correct the name.")
    expected, unchecked = checksums_of(config, infos)
    files = [source_file(config, name, info, expected.get(name)) for name, info in sorted(infos.items())]
    counts = map_shards(copy_file, files, output_path=config.output_path)
    return {**copied(counts, files), **unchecked}


def checksums_of(config: Any, names: Iterable[str]) -> tuple[dict[str, Expected], dict[str, int]]:
    """The checksums of `checksum_file` by name, and the count of the files without one. Raises SourceError."""
    if config.checksum_file is None:
        return {}, {}
    expected, unchecked = expected_of(config.checksum_file, names, access=config.access, output_path=config.output_path)
    if not config.allow_unchecked:
        require_all(config.checksum_file, unchecked)
    for name in unchecked:
        log.warning("%r has no line in %r: it is copied unchecked", name, config.checksum_file)
    return expected, {"unchecked": len(unchecked)}


def copied(counts: Counts, files: list[SourceFile]) -> dict[str, Any]:
    """The result of a copy. Writes checksums.json, and removes all parts."""
    output_path = files[0].output_path
    remove_parts(output_path, ROOM)
    by_path = {file.path: file for file in files}
    sha256 = write_checksums(output_path, by_path)
    totals = {key: counts.get(key, 0) for key in COUNTS}
    totals |= {key: count for reason in REASONS if (count := counts.get(key := f"retries_{reason}", 0))}
    return {"files": counts["files"], "bytes": counts["bytes"], **totals, "sha256": sha256}


def write_checksums(output_path: str, files: Mapping[str, SourceFile]) -> str:
    """Write checksums.json of the copied files, by name. Return the digest of its names and checksums."""
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        entries = list(pool.map(lambda file: read_json(file.checksum_path), files.values()))
    checksums = [{"name": name, **entry["checksum"]} for name, entry in zip(files, entries, strict=True)]
    write_json(join(output_path, CHECKSUMS), {"format_version": 1, "files": checksums})
    listing = "".join(f"{row['sha256']}  {row['name']}\n" for row in checksums)  # as sha256sum prints it
    return hashlib.sha256(listing.encode()).hexdigest()


def list_source(source: str, access: StoreAccess = StoreAccess(), output_path: str = "") -> dict[str, dict[str, Any]]:
    """Return the store's information of each file, by its name relative to the folder or the fixed part of a glob.

    Raises FileNotFoundError for a source without files, SourceError for one that cannot be listed.
    """
    try:
        return _listed(source, access, output_path)
    except (FileNotFoundError, MarinError):
        raise
    except Exception as error:  # of each store's own client
        if kind_of(source) is StoreKind.GCS:
            from marin_assets.stages.download.stores.gcs import is_unpaid, unpaid

            if is_unpaid(error):
                raise unpaid(source) from error
        if isinstance(error, PermissionError):
            raise SourceError(
                f"{source!r} cannot be listed: {error}. Give this machine the right, or set anonymous=True or "
                "requester_pays=True of StoreAccess for a bucket that needs it."
            ) from error
        raise


def _listed(source: str, access: StoreAccess, output_path: str) -> dict[str, dict[str, Any]]:
    fs, root = filesystem_for(source, access)
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
    elif is_web(root):
        folder, infos = posixpath.dirname(root), {root: info_of(root, access, output_path)}
    elif fs.exists(root):
        folder, infos = posixpath.dirname(root), {root: fs.info(root)}
    else:
        raise FileNotFoundError(f"{source!r} does not exist. Expected a file, a folder or a glob.")
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
            by_name[name] = info
    if not by_name:
        raise FileNotFoundError(f"{source!r} has no files. Expected at least one whose name does not begin with a dot.")
    return _with_sizes(by_name, fs, access, output_path)


def _with_sizes(
    infos: dict[str, dict[str, Any]], fs: fsspec.AbstractFileSystem, access: StoreAccess, output_path: str
) -> dict[str, dict[str, Any]]:
    """The information of each file, requested where a listing has none, as the pages of a server."""

    def complete(info: dict[str, Any]) -> dict[str, Any]:
        if info.get("size") is not None or mark_of(info):
            return info
        address = info["name"]
        return info_of(address, access, output_path) if is_web(address) else fs.info(address)

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        return dict(zip(infos, pool.map(complete, infos.values()), strict=True))


def info_of(url: str, access: StoreAccess, output_path: str) -> dict[str, Any]:
    """Size and mark of a file of a server. Raises MissingFileError, SourceError and DownloadError."""
    from marin_assets.stages.download.stores.web import WebReader

    return WebReader(access, output_path, Tally(), threading.Event()).info(url)


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


def source_file(
    config: DownloadFilesConfig, name: str, info: dict[str, Any], expected: Expected | None = None
) -> SourceFile:
    """The shard of a listed file. Raises SourceError for one that its store changes on the way."""
    fs, _ = filesystem_for(config.source, config.access)
    sha256 = config.expected_sha256.get(name)
    pinned = () if sha256 is None else (Expected(kind="sha256", digest=sha256, by="expected_sha256"),)
    return shard_of(
        config, fs.unstrip_protocol(info["name"]), name, info, (*pinned, *((expected,) if expected else ()))
    )


def shard_of(
    config: Any, source: str, name: str, info: Mapping[str, Any], expected: tuple[Expected, ...]
) -> SourceFile:
    """The shard of a file with the state in its store. Raises SourceError for one that its store changes on the way."""
    is_gcs = kind_of(source) is StoreKind.GCS
    if is_gcs and info.get("contentEncoding") == "gzip":
        raise SourceError(
            f"{source!r} is stored with contentEncoding 'gzip', and Google sends other bytes than it lists. Remove the "
            "encoding of the object, or leave it out."
        )
    return SourceFile(
        source=source,
        path=name,
        output_path=config.output_path,
        size_bytes=info.get("size"),
        mark=mark_of(info),
        expected=(*expected, *(of_store(info) if is_gcs else ())),
        access=config.access,
    )


def copy_file(file: SourceFile) -> dict[str, int]:
    """Copy one file, unless its copy is complete. Returns its counts. Raises SourceError and DownloadError."""
    tally, stop = Tally(file.path, files=1, size_bytes=file.size_bytes or 0), threading.Event()
    file = comparable(file)
    reader = reader_of(file.source, file.access, file.output_path, tally, stop)
    transfer = Transfer(
        StoreRemote(reader), file.output_path, room=ROOM, range_bytes=file.access.range_bytes, tally=tally, stop=stop
    )
    transfer.fetch([file], in_flight=file.access.ranges_in_flight)
    return {"files": 0, "bytes": 0, **tally.counts()}
