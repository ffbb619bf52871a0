"""Copy the files that a list names, from a server that lists nothing itself.

In:  the address in front of all names, and names: in the config, or in a file of one a line, plain or compressed with
     gzip, such as Common Crawl's `….paths.gz`. Globs choose among them, and a sample is chosen by hash.
Out: the files under their names below the address, and `checksums.json` with the size and SHA-256 of each. While the
     stage runs, `.checksums/` holds the checksum of each finished file, which is not copied again, and `.download/` the
     parts of the others, which are continued at their byte.

A name that is not below the address, a name that the list has twice, and a glob that matches nothing are errors. Names
that end with "/" are no files, and counted. A server that is busy or fails is tried again.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.download.files import checksums_of, copied, copy_file, info_of, shard_of
from marin_assets.stages.download.hub.listing import matcher
from marin_assets.stages.download.stores.access import StoreAccess, filesystem_for, is_web, require_usable
from marin_assets.stages.download.stores.small_files import read_text, sample, share
from marin_assets.stages.download.stores.source_file import Expected, MissingFileError, SourceFile
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, VersionedValue, versioned
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import REQUESTS_AT_ONCE
from marin_resources.types.errors import MarinError

KINDS = ("fsspec",)

SHOWN_NAMES = 3


class ListError(MarinError, ValueError):
    """A list that cannot be used: one sentence with the name or the glob."""


@dataclass(frozen=True, kw_only=True)
class DownloadListedConfig:
    base: str
    """The address in front of every name: "https://data.commoncrawl.org/". Wrap it in versioned(). "": the list has
    whole addresses, and files have their names without "https://"."""
    list_path: str | None = None
    """A file of names, one a line. A name may be a whole address that begins with `base`."""
    names: tuple[str, ...] = versioned(())
    """Names, in place of a file of them."""
    include: tuple[str, ...] = versioned(("**",))
    """Globs of names: `*` within a segment, `**` over segments. Each must match a name."""
    sample_files: int | None = None
    """So many of the names that the globs match, chosen by the hash of the name. Wrap it in versioned()."""
    sample_fraction: float | None = None
    """That share of the names, by hash: a list that grows keeps those that it had. Wrap it in versioned()."""
    checksum_file: str | None = None
    """A file of checksums (`SHA256SUMS`, `sha1sums.txt`), or a form with a name in it: "https://a.org/{name}.md5"."""
    allow_unchecked: bool = False
    """Accept files that the file of checksums does not have. They are counted."""
    access: StoreAccess = field(default_factory=StoreAccess)
    """Rights and limits at the store. Not versioned."""
    output_path: str = THIS_OUTPUT_PATH

    def check_step(self, name: str, resources: Any) -> None:
        """Raise an error for what the stage would refuse, and for a sample that would not enter the version."""
        for field_name in ("sample_files", "sample_fraction"):
            value = getattr(self, field_name)
            if value is not None and not isinstance(value, VersionedValue):
                raise ListError(
                    f"Step {name!r}: {field_name} is {value!r}, expected versioned({value!r}): it decides the content."
                )
        check_config(self, _require_usable, name)


def download_listed(config: DownloadListedConfig) -> dict[str, Any]:
    """Copy the files that a list names, and record their sizes and checksums.

    Returns listed (names in the list), left_out_folders (those that end with "/"), files, bytes, and sha256, the digest
    of all names and checksums; bytes_fetched, requests and retries of this attempt, and retries_<reason>; with a file
    of checksums, unchecked. Raises ListError for a list that cannot be used, SourceError for a file that cannot be
    copied, AccessError.
    """
    _require_usable(config)
    listed, folders = _names(config)
    names = _sampled(config, chosen(listed, config.include, config.list_path or "names"))
    expected, unchecked = checksums_of(config, names)
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        files = list(pool.map(lambda name: _listed_file(config, name, listed[name], expected.get(name)), names))
    counts = map_shards(copy_listed, files, output_path=config.output_path)
    return {"listed": len(listed), "left_out_folders": folders, **copied(counts, files), **unchecked}


def _require_usable(config: DownloadListedConfig) -> None:
    if config.sample_files is not None and config.sample_fraction is not None:
        raise ListError("sample_files and sample_fraction are both set, expected at most one. Leave one out.")
    if config.sample_files is not None and config.sample_files < 1:
        raise ListError(f"sample_files is {config.sample_files!r}, expected a number above 0. Correct it.")
    if config.sample_fraction is not None and not 0 < config.sample_fraction <= 1:
        raise ListError(f"sample_fraction is {config.sample_fraction!r}, expected one above 0, up to 1. Correct it.")
    require_usable(config.access, *([config.base] if config.base else []))


def _sampled(config: DownloadListedConfig, names: list[str]) -> list[str]:
    if config.sample_fraction is None:
        return sample(names, config.sample_files)
    kept = share(names, config.sample_fraction)
    if not kept:
        raise ListError(
            f"sample_fraction is {config.sample_fraction!r}, which keeps none of {len(names):,} names. Choose a larger "
            "one."
        )
    return kept


def chosen(listed: Collection[str], globs: Sequence[str], place: str) -> list[str]:
    """Return the names that a glob matches, sorted. Raises ListError for a glob without a match."""
    names, kept = list(listed), set[str]()
    for glob in globs:
        matched = set(filter(matcher([glob]), names))
        if not matched:
            first = ", ".join(map(repr, names[:SHOWN_NAMES])) or "nothing"
            raise ListError(
                f"The glob {glob!r} matches none of the {len(names):,} names of {place!r}, which begins with {first}. "
                "Correct the glob."
            )
        kept |= matched
    return sorted(kept)


def _names(config: DownloadListedConfig) -> tuple[Mapping[str, str], int]:
    """The names of the list with their addresses, and the number of lines that are folders. Raises ListError."""
    if (config.list_path is None) == (not config.names):
        raise ListError(
            f"list_path is {config.list_path!r} and names has {len(config.names)} names, expected either a list or "
            "names. Pass one of the two."
        )
    if config.list_path is None:
        lines: Sequence[str] = config.names
    else:
        text = read_text(config.list_path, config.access, config.output_path)
        lines = [line for line in map(str.strip, text.splitlines()) if line]
    if not lines:
        raise ListError(f"The list {config.list_path!r} has no names. Expected one a line.")
    pairs = [_below(config.base, line) for line in lines if not line.endswith("/")]
    if not pairs:
        raise ListError(f"The list has no name of a file: {lines[0]!r} ends with '/'. Correct the list.")
    name, count = Counter(name for name, _ in pairs).most_common(1)[0]
    if count > 1:
        raise ListError(f"The list has {name!r} {count} times, expected each name once. Correct the list.")
    return dict(pairs), len(lines) - len(pairs)


def _below(base: str, line: str) -> tuple[str, str]:
    """The name of a line's file below the output, and its address. Raises ListError."""
    if base:
        name = line.removeprefix(base).lstrip("/")
        address = posixpath.join(base, name)
    else:
        _, separator, name = line.partition("://")
        name, address = (name.partition("?")[0] if is_web(line) else name) if separator else "", line
    parts = name.split("/")
    if "://" in name or any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        raise ListError(f"The list has {line!r}, which is no name of a file below {base!r}. Correct base or the list.")
    return name, address


def _listed_file(config: DownloadListedConfig, name: str, address: str, expected: Expected | None) -> SourceFile:
    if is_web(address):
        info = info_of(address, config.access, config.output_path)
    else:
        fs, path = filesystem_for(address, config.access)
        try:
            info = fs.info(path)
        except FileNotFoundError:
            raise MissingFileError(
                f"{address!r} does not exist, and the list has it. Correct base or the list."
            ) from None
    return shard_of(config, address, name, info, (expected,) if expected else ())


def copy_listed(file: SourceFile) -> dict[str, int]:
    """Copy one file, unless its copy is complete. Returns its counts. Raises SourceError and DownloadError."""
    return copy_file(file)
