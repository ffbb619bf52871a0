"""Copy the files that a list names, from a server that lists nothing itself.

In:  the address in front of all names, and names: in the config, or in a file of one a line, plain or compressed with
     gzip, such as Common Crawl's `….paths.gz`. Globs choose among them.
Out: the files under their names below the address, and `checksums.json` with the size and SHA-256 of each. While the
     stage runs, `.checksums/` holds the checksum of each finished file; such a file is not copied again.

A name that is not below the address, a name that the list has twice, and a glob that matches nothing are errors. A
server that is busy or fails is tried again.
"""

from __future__ import annotations

import gzip
import logging
import posixpath
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from marin_assets.stages.download.files import SourceError, SourceFile, copy_file, mark_of, write_checksums
from marin_assets.stages.download.hub.listing import matcher
from marin_assets.stages.download.name_sample import sample_names
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import REQUESTS_AT_ONCE, read_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("fsspec",)

TRIES = 6
FIRST_WAIT_S = 2.0
"""Doubled after each try: a minute in all. Common Crawl answers 503 for some seconds when it is busy."""
BUSY = frozenset({403, 408, 429, 500, 502, 503, 504})
"""Answers that are tried again. Common Crawl answers 403 to many requests at once."""
SHOWN_NAMES = 3

log = logging.getLogger(__name__)
T = TypeVar("T")


class ListError(MarinError, ValueError):
    """A list that cannot be used: one sentence with the name or the glob."""


@dataclass(frozen=True, kw_only=True)
class DownloadListedConfig:
    base: str
    """The address in front of every name: "https://data.commoncrawl.org/". Wrap it in versioned()."""
    list_path: str | None = None
    """A file of names, one a line. A name may be a whole address that begins with `base`."""
    names: tuple[str, ...] = versioned(())
    """Names, in place of a file of them."""
    include: tuple[str, ...] = versioned(("**",))
    """Globs of names: `*` within a segment, `**` over segments. Each must match a name."""
    max_files: int | None = None
    """As many of the chosen names, by their hash, so a list in another order has the same; None: all. Wrap it in
    versioned()."""
    output_path: str = THIS_OUTPUT_PATH

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class ListedFile(SourceFile):
    """One file to copy, with more than one try."""


def download_listed(config: DownloadListedConfig) -> dict[str, int | float | str]:
    """Copy the files that a list names, and record their sizes and checksums.

    Returns listed (names in the list), files, bytes, retries, and sha256, the digest of all names and checksums. Raises
    ListError for a list that cannot be used, SourceError for a file that cannot be copied.
    """
    _check(config)
    listed = _names(config)
    names = sample_names(chosen(listed, config.include, config.list_path or "names"), config.max_files)
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        files = list(pool.map(lambda name: _listed_file(config, name), names))
    counts = map_shards(copy_listed, files, output_path=config.output_path)
    sha256 = write_checksums(config.output_path, dict(zip(names, files, strict=True)))
    return {"listed": len(listed), "files": counts["files"], "bytes": counts["bytes"],
            "retries": counts.get("retries", 0), "sha256": sha256}  # fmt: skip


def _check(config: DownloadListedConfig) -> None:
    if config.max_files is not None and config.max_files < 1:
        raise ListError(f"max_files is {config.max_files!r}, expected 1 or more, or None. Correct it.")


def chosen(names: Sequence[str], globs: Sequence[str], place: str) -> list[str]:
    """Return the names that a glob matches, sorted. Raises ListError for a glob without a match."""
    kept: set[str] = set()
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


def _names(config: DownloadListedConfig) -> list[str]:
    """The names of the list, below the address, each once."""
    if (config.list_path is None) == (not config.names):
        raise ListError(
            f"list_path is {config.list_path!r} and names has {len(config.names)} names, expected either a list or "
            "names. Pass one of the two."
        )
    if config.list_path is None:
        lines: Sequence[str] = config.names
    else:
        content = read_bytes(config.list_path)
        text = (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).decode()
        lines = [line for line in map(str.strip, text.splitlines()) if line]
    if not lines:
        raise ListError(f"The list {config.list_path!r} has no names. Expected one a line.")
    names = [_below(config.base, line) for line in lines]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise ListError(f"The list has {name!r} {count} times, expected each name once. Correct the list.")
    return names


def _below(base: str, line: str) -> str:
    name = line.removeprefix(base).lstrip("/")
    parts = name.split("/")
    if "://" in name or any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        raise ListError(f"The list has {line!r}, which is no name of a file below {base!r}. Correct base or the list.")
    return name


def _listed_file(config: DownloadListedConfig, name: str) -> ListedFile:
    address = posixpath.join(config.base, name)
    fs, path = filesystem_of(address)
    info, _ = _persistently(address, lambda: fs.info(path))
    return ListedFile(
        source=address,
        target=join(config.output_path, name),
        checksum_path=join(config.output_path, ".checksums", f"{name}.json"),
        size_bytes=info.get("size"),
        mark=mark_of(info),
        expected_sha256=None,
    )


def copy_listed(file: ListedFile) -> dict[str, int]:
    """Copy one file, unless its copy is complete. Returns files, bytes and retries. Raises SourceError."""
    counts, retries = _persistently(file.source, lambda: copy_file(file))
    return {**counts, "retries": retries}


def _persistently(address: str, call: Callable[[], T]) -> tuple[T, int]:
    """The result of the call, and how often it was tried again. A missing file and a changed one are errors at once."""
    for retries, wait_s in enumerate(_waits()):
        try:
            return call(), retries
        except (FileNotFoundError, SourceError):
            raise
        except Exception as error:  # of aiohttp, which is imported late, and of each store
            if not _is_passing(error):
                raise SourceError(f"{address!r} cannot be read: {error}. Correct base or the list.") from error
            if wait_s is None:
                raise SourceError(
                    f"{address!r} was tried {TRIES} times, the last time with {type(error).__name__}: {error}. Run the "
                    "step again later: what has been copied is kept."
                ) from error
            log.info("%s: %s, the next try is in %g s", address, error, wait_s)
            time.sleep(wait_s)
    raise AssertionError("unreachable")


def _waits() -> Iterator[float | None]:
    """The wait after each try that fails; None after the last."""
    yield from (FIRST_WAIT_S * 2**n for n in range(TRIES - 1))
    yield None


def _is_passing(error: Exception) -> bool:
    status: Any = getattr(error, "status", None)  # of aiohttp.ClientResponseError
    if isinstance(status, int):
        return status in BUSY
    return isinstance(error, OSError | TimeoutError) or type(error).__module__.partition(".")[0] == "aiohttp"
