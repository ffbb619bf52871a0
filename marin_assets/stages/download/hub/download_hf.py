"""Download files of a dataset or model of the Hugging Face hub at one commit, each verified by its checksum.

In:  the name of a repository, a branch, tag or commit, and globs, or a config and a split; a folder or bucket with the
     hub's paths as a mirror.
Out: the files under their names in the repository, and `checksums.json` with the size, SHA-256 and git object of each.
     While the stage runs, `.hub/` holds its commit, its budget of requests and the parts of files, and `.checksums/`
     the checksum of each finished file.

A branch is resolved once, by the first attempt. An attempt that continues after a kill reads the same commit, and
fetches no byte again that has arrived. The version has the revision of the config: a branch's name, or the 40 digits of
a commit.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from marin_assets.stages.download.hub.listing import Choice, choose, list_files
from marin_assets.stages.download.hub.repository import (
    COMMIT,
    HubConfigError,
    HubError,
    HubFile,
    Repository,
    endpoint_of,
)
from marin_assets.stages.download.hub.source import Source, source_of
from marin_assets.stages.download.hub.splits import CARD, EXPORT, MOST_CARD_BYTES, export_files, split_files
from marin_assets.stages.download.hub.transfer import ROOM, CommitFiles, read_verified
from marin_assets.stages.download.web.faults import REASONS
from marin_assets.stages.download.web.tally import Tally
from marin_assets.stages.download.web.transfer import Transfer, mark_path, remove_parts
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import REQUESTS_AT_ONCE, StoredFile, exists, read_json, write_json
from marin_resources.storage.paths import join

KINDS = ("huggingface",)

CHECKSUMS = "checksums.json"
_REVISION = re.compile(r"(?!\.{1,2}\Z)[^\s\x00-\x1f\x7f]{1,250}")
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class DownloadHfConfig:
    dataset: str
    """ "owner/name" of a dataset, or of a model; versioned()."""
    revision: str = field(default_factory=lambda: versioned("main"))
    """A branch, a tag, or the 40 digits of a commit."""
    repo_type: str = field(default_factory=lambda: versioned("dataset"))
    """ "dataset" or "model"."""
    include: tuple[str, ...] = field(default_factory=lambda: versioned(("**",)))
    """Globs of files: `*` within a name, `**` over folders."""
    exclude: tuple[str, ...] = field(default_factory=lambda: versioned(()))
    """Globs of files to leave out."""
    config_name: str | None = field(default_factory=lambda: versioned(None))
    """A config of the dataset, as its README.md lists it."""
    split: str | None = field(default_factory=lambda: versioned(None))
    """A split of the config, such as "train"."""
    parquet_export: bool = field(default_factory=lambda: versioned(False))
    """The hub's own conversion to parquet, a branch, in place of the files."""
    allow_partial: bool = field(default_factory=lambda: versioned(False))
    """Accept an export of the first 5 GB of a split."""
    output_path: str = THIS_OUTPUT_PATH
    endpoint: str | None = None
    """Address of another hub; None: HF_ENDPOINT, or huggingface.co."""
    mirror: str | None = None
    """A folder or bucket with the hub's paths, read in its place: see `mirror.py`."""
    max_requests_per_5_min: int = 3000
    """Limit of requests to the hub, for all workers together. 3000 is the hub's for an address without a token."""
    ranges_in_flight: int = 8
    """Ranges that one worker fetches at a time."""
    range_bytes: int = 64 * 2**20
    max_shard_files: int = 1000
    max_shard_bytes: int = 16 * 2**30


@dataclass(frozen=True, kw_only=True)
class HubShard:
    """Files that one worker fetches."""

    number: str
    """ "3 of 12", for the log."""
    repository: Repository
    commit: str
    files: tuple[HubFile, ...]
    output_path: str
    max_requests_per_5_min: int
    ranges_in_flight: int
    range_bytes: int

    @property
    def inputs(self) -> tuple[StoredFile, ...]:
        """None: the commit never changes, and each file is verified."""
        return ()


def download_hf(config: DownloadHfConfig) -> dict[str, Any]:
    """Download files of the hub at one commit.

    Returns files, bytes, dataset and commit; bytes_fetched, requests, retries and retries_<reason> of this attempt;
    left_out_hidden and left_out_excluded; sha256, the digest of all names and checksums. Raises HubConfigError and
    HubError; ShardError for a file that cannot be fetched.
    """
    _require_usable(config)
    repository = Repository(
        id=config.dataset, kind=config.repo_type, endpoint=endpoint_of(config.endpoint), mirror=config.mirror
    )
    tally, stop = Tally(), threading.Event()
    with _opened(repository, config, tally, stop) as source:
        commit, name = _pinned(source, config)
    repository = replace(repository, id=name)
    with _opened(repository, config, tally, stop) as source:
        choice = _chosen(source, config, commit, tally, stop)
    _log_plan(config, repository, commit, choice)
    shards = _shards(config, repository, commit, choice.files)
    counts = map_shards(fetch_shard, shards, output_path=config.output_path)
    remove_parts(config.output_path, ROOM)
    names = ["bytes_fetched", "requests", "retries", *(f"retries_{reason}" for reason in REASONS)]
    listed = tally.counts()
    return {
        "files": counts["files"],
        "bytes": counts["bytes"],
        "dataset": name,
        "commit": commit,
        **{key: counts.get(key, 0) + listed.get(key, 0) for key in names},
        **{f"left_out_{reason}": count for reason, count in choice.left_out.items()},
        "sha256": _write_checksums(config.output_path, choice.files),
    }


def fetch_shard(shard: HubShard) -> dict[str, int]:
    """Fetch the files of a shard. Returns their counts. Raises HubError."""
    size_bytes = sum(file.size_bytes for file in shard.files)
    tally = Tally(f"{shard.repository.id}, shard {shard.number}", files=len(shard.files), size_bytes=size_bytes)
    stop = threading.Event()
    with _opened(shard.repository, shard, tally, stop) as source:
        transfer = Transfer(
            CommitFiles(source, shard.commit),
            shard.output_path,
            room=ROOM,
            range_bytes=shard.range_bytes,
            tally=tally,
            stop=stop,
        )
        transfer.fetch(shard.files, in_flight=shard.ranges_in_flight)
    tally.close()
    return {"files": 0, "bytes": 0, **tally.counts()}


def _require_usable(config: DownloadHfConfig) -> None:
    for name in ("max_requests_per_5_min", "ranges_in_flight", "range_bytes", "max_shard_files", "max_shard_bytes"):
        if getattr(config, name) < 1:
            raise HubConfigError(f"{name} is {getattr(config, name)!r}, expected a number above 0. Correct it.")
    if not isinstance(config.revision, str) or not _REVISION.fullmatch(config.revision):
        raise HubConfigError(f"The revision is {config.revision!r}, expected a branch, a tag or a commit. Correct it.")
    if config.parquet_export and config.repo_type != "dataset":
        raise HubConfigError("parquet_export is for a dataset, and repo_type is 'model'. Leave it out.")
    if config.parquet_export and config.revision not in ("main", EXPORT) and not COMMIT.fullmatch(config.revision):
        raise HubConfigError(
            f"The revision is {config.revision!r}, and the hub exports 'main' alone. Pass 'main', or a commit of "
            f"{EXPORT!r}, with parquet_export."
        )


@contextmanager
def _opened(
    repository: Repository, config: DownloadHfConfig | HubShard, tally: Tally, stop: threading.Event
) -> Iterator[Source]:
    source = source_of(
        repository,
        tally=tally,
        budget_path=join(config.output_path, ".hub", "budget.json"),
        most_requests=config.max_requests_per_5_min,
        stop=stop,
        connections=config.ranges_in_flight,
    )
    try:
        yield source
    finally:
        source.close()


def _pinned(source: Source, config: DownloadHfConfig) -> tuple[str, str]:
    """The commit and the name of the repository, as the first attempt of this config has resolved them."""
    path = join(config.output_path, ".hub", "commit.json")
    revision = EXPORT if config.parquet_export and not COMMIT.fullmatch(config.revision) else config.revision
    requested = {"dataset": config.dataset, "repo_type": config.repo_type, "revision": revision}
    if exists(path) and (pinned := read_json(path))["requested"] == requested:
        return pinned["commit"], pinned["dataset"]
    commit, name = source.commit_of(revision)
    write_json(path, {"format_version": 1, "requested": requested, "dataset": name, "commit": commit})
    return commit, name


def _chosen(source: Source, config: DownloadHfConfig, commit: str, tally: Tally, stop: threading.Event) -> Choice:
    include, exclude = _globs(config.include), _globs(config.exclude)
    if config.parquet_export:
        files = export_files(source, commit, config.config_name, config.split, allow_partial=config.allow_partial)
    elif config.config_name is not None or config.split is not None:
        card = next((file for file in list_files(source, commit, [CARD]) if file.path == CARD), None)
        if card and card.size_bytes > MOST_CARD_BYTES:
            raise HubError(
                f"{CARD!r} of {source.repository} has {card.size_bytes} bytes, expected at most {MOST_CARD_BYTES}. "
                "Choose files by globs."
            )
        text = read_verified(source, commit, card, tally=tally, stop=stop).decode(errors="replace") if card else ""
        files = split_files(source, commit, text, config.config_name, config.split)
    else:
        files = list_files(source, commit, include)
    return choose(source, files, include, exclude, CHECKSUMS)


def _log_plan(config: DownloadHfConfig, repository: Repository, commit: str, choice: Choice) -> None:
    """Log what is fetched, and how long the hub's limit of requests makes it last: a file is at least one request."""
    size_bytes = sum(file.size_bytes for file in choice.files)
    line = f"{repository.id} at {commit}: {len(choice.files):,} files, {size_bytes / 1e6:,.1f} MB"
    windows = len(choice.files) / config.max_requests_per_5_min
    if repository.mirror is None and windows > 1:
        line += f"; {config.max_requests_per_5_min:,} requests in 5 minutes, so at least {5 * int(windows)} minutes"
    log.info("%s", line)


def _globs(globs: Sequence[str]) -> tuple[str, ...]:
    return (globs,) if isinstance(globs, str) else tuple(globs)


def _shards(config: DownloadHfConfig, repository: Repository, commit: str, files: Sequence[HubFile]) -> list[HubShard]:
    groups: list[list[HubFile]] = []
    size_bytes = 0
    for file in files:
        if not groups or len(groups[-1]) >= config.max_shard_files or size_bytes >= config.max_shard_bytes:
            groups.append([])
            size_bytes = 0
        groups[-1].append(file)
        size_bytes += file.size_bytes
    return [
        HubShard(
            number=f"{number} of {len(groups)}",
            repository=repository,
            commit=commit,
            files=tuple(group),
            output_path=config.output_path,
            max_requests_per_5_min=config.max_requests_per_5_min,
            ranges_in_flight=config.ranges_in_flight,
            range_bytes=config.range_bytes,
        )
        for number, group in enumerate(groups, start=1)
    ]


def _write_checksums(output_path: str, files: Sequence[HubFile]) -> str:
    """Write checksums.json. Returns the digest of its names and checksums, as `sha256sum` prints them."""
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        marks = list(pool.map(lambda file: read_json(mark_path(file.path, output_path)), files))
    rows = [{"name": file.path, **mark} for file, mark in zip(files, marks, strict=True)]
    write_json(join(output_path, CHECKSUMS), {"format_version": 1, "files": rows})
    listing = "".join(f"{row['sha256']}  {row['name']}\n" for row in rows)
    return hashlib.sha256(listing.encode()).hexdigest()
