"""Select captures of a crawl by its index: rows with the place of each record, for `fetch_captures`.

In:  an index, on a disk, in a bucket or on a server: a folder with cluster.idx and files cdx-00000.gz, or files of
     parquet with Common Crawl's columns.
Out: rows {"url", "timestamp", "status", "mime", "languages", "digest", "filename", "offset", "length"} in shards
     "part-00000-of-00003.jsonl.zst", in the order of the index.

Each line of the index that is read is selected or rejected for one reason: lines = selected + rejected.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from marin_assets.documents import SUFFIX, write_rows
from marin_assets.stages.download.crawl.block_reader import opened
from marin_assets.stages.download.crawl.cdx import CLUSTER, Block, blocks_of, in_ranges, key_ranges, lines_of
from marin_assets.stages.download.crawl.crawl_file import CrawlFile, CrawlFileShard
from marin_assets.stages.download.crawl.damage import reject, require_some
from marin_assets.stages.download.crawl.files import file_at, is_web, located
from marin_assets.stages.download.warc.members import Readable, SeekableFile
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.files import stored_files
from marin_resources.storage.paths import join

KINDS = ("jsonl",)

REASONS = ("bad_line", "address", "status", "mime", "language", "sample")
SHARD_BYTES = 64 * 2**20
KEY, STATUS = "url_surtkey", "fetch_status"
COLUMNS = {
    "url": "url",
    "fetch_time": "timestamp",
    "fetch_status": "status",
    "content_mime_detected": "mime",
    "content_languages": "languages",
    "content_digest": "digest",
    "warc_filename": "filename",
    "warc_record_offset": "offset",
    "warc_record_length": "length",
}
"""Columns of Common Crawl's table, and the names here."""


@dataclass(frozen=True, kw_only=True)
class SelectCapturesConfig:
    index_path: str
    """A folder with cluster.idx and its cdx files, as …/cc-index/collections/CC-MAIN-2024-22/indexes, or a folder or a
    file of parquet. On a server a folder with cluster.idx, or one file of parquet. versioned()."""
    output_path: str = THIS_OUTPUT_PATH
    domains: tuple[str, ...] = versioned(())
    """Domains, each with its subdomains, such as "wikipedia.org"; () selects all."""
    urls: tuple[str, ...] = versioned(())
    """Addresses; "https://example.org/docs/*" is all that begin so."""
    languages: tuple[str, ...] = versioned(())
    """Languages of which one is the first of the page, such as "spa"; () selects all."""
    statuses: tuple[int, ...] = versioned((200,))
    """HTTP statuses; () selects all."""
    mimes: tuple[str, ...] = versioned(("text/html", "application/xhtml+xml"))
    """MIME types as the crawl has detected them; () selects all."""
    sample_fraction: float = versioned(1.0)
    """Share of the addresses, chosen by their hash."""
    max_connections: int = 8
    """Limit of the connections of one machine to a server."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class IndexShard(CrawlFileShard):
    """Blocks of one cdx file, or one file of parquet."""

    blocks: tuple[Block, ...]
    config: SelectCapturesConfig


def select_captures(config: SelectCapturesConfig) -> dict[str, int | float]:
    """Select captures of a crawl by its index.

    Returns lines (of the index, read), selected, rejected, each rejected_<reason>, and bytes (of the records). Raises
    CrawlError for an index that is damaged or missing, and if nothing is selected.
    """
    _check(config)
    counts = map_shards(select_shard, _shards(config), output_path=config.output_path)
    sentence = "Correct the domains, urls, languages, statuses or mimes."
    require_some(counts, config.index_path, sentence, of="lines", kept="selected")
    return dict(counts)


def _check(config: SelectCapturesConfig) -> None:
    if not 0 < config.sample_fraction <= 1:
        raise CrawlError(f"sample_fraction is {config.sample_fraction!r}, expected a fraction above 0, at most 1.")
    if config.max_connections < 1:
        raise CrawlError(f"max_connections is {config.max_connections!r}, expected 1 or more. Correct it.")
    for url in config.urls:
        if not urlsplit(url).hostname:
            raise CrawlError(f"urls has {url!r}, expected an address such as 'https://example.org/docs/*'. Correct it.")
    for domain in config.domains:
        if not domain.strip(".") or set(domain) & set("/:*, "):
            raise CrawlError(f"domains has {domain!r}, expected a name such as 'example.org'. Correct it.")


def _ranges(config: SelectCapturesConfig) -> list[tuple[str, str]]:
    return key_ranges(config.domains, [urlsplit(url).hostname or "" for url in config.urls])


def _shards(config: SelectCapturesConfig) -> list[IndexShard]:
    path = config.index_path
    parts: list[tuple[CrawlFile, tuple[Block, ...]]] = []
    if path.endswith(".parquet"):
        base, _, name = path.rpartition("/")
        files_of = [file_at(path, config.max_connections)] if is_web(path) else located([name], base or ".", 1)
        parts = [(file, ()) for file in files_of]
    elif not is_web(path) and (tables := [file for file in stored_files(path) if file.name.endswith(".parquet")]):
        parts = [
            (CrawlFile(name=file.name, path=file.path, size_bytes=file.size_bytes, stored=file), ()) for file in tables
        ]
    else:
        (cluster,) = located([CLUSTER], path, config.max_connections)
        with opened(cluster, Counter(), max_connections=config.max_connections) as readable:
            blocks = blocks_of(readable, _ranges(config), SHARD_BYTES)
        names = sorted({block.file for block in blocks})
        files = dict(zip(names, located(names, path, config.max_connections), strict=True))
        parts = [(files[block.file], (block,)) for block in blocks]
    if not parts:
        raise CrawlError(
            f"The index {config.index_path!r} has no block that can match. Correct the domains or the urls."
        )
    return [
        IndexShard(
            file=file,
            blocks=blocks,
            output=join(config.output_path, f"part-{index:05d}-of-{len(parts):05d}{SUFFIX}"),
            config=config,
        )
        for index, (file, blocks) in enumerate(parts)
    ]


def select_shard(shard: IndexShard) -> Counts:
    """Select the captures of one shard. Returns the counts of `select_captures`."""
    names = ("lines", "selected", "rejected", *(f"rejected_{reason}" for reason in REASONS), "bytes")
    counts = Counter(dict.fromkeys(names, 0))
    with opened(shard.file, counts, max_connections=shard.config.max_connections) as file:
        rows = _table_rows(file, shard.config) if not shard.blocks else _cdx_rows(file, shard.blocks)
        write_rows(shard.output, _selected(rows, shard.config, counts), replace=False)
    return dict(counts)


def _selected(
    rows: Iterator[tuple[str, dict[str, Any]] | None], config: SelectCapturesConfig, counts: Counter[str]
) -> Iterator[Mapping[str, Any]]:
    from xxhash import xxh3_64_intdigest

    ranges = _ranges(config)
    prefixes = tuple(url[:-1] for url in config.urls if url.endswith("*"))
    exact = frozenset(url for url in config.urls if not url.endswith("*"))
    domain_ranges = key_ranges(config.domains, [])

    def reason_of(key: str, row: dict[str, Any]) -> str:
        url = row["url"]
        if ranges and not in_ranges(key, ranges):
            return "address"
        is_named = url in exact or url.startswith(prefixes) or (bool(domain_ranges) and in_ranges(key, domain_ranges))
        if config.urls and not is_named:
            return "address"
        if config.statuses and row["status"] not in config.statuses:
            return "status"
        if config.mimes and row["mime"] not in config.mimes:
            return "mime"
        if config.languages and row["languages"].partition(",")[0] not in config.languages:
            return "language"
        return "" if xxh3_64_intdigest(url.encode()) < config.sample_fraction * 2**64 else "sample"

    for item in rows:
        counts["lines"] += 1
        reason = "bad_line" if item is None else reason_of(*item)
        if item is None or reason:
            reject(counts, reason)
            continue
        counts["selected"] += 1
        counts["bytes"] += item[1]["length"]
        yield item[1]


def _cdx_rows(file: Readable, blocks: Sequence[Block]) -> Iterator[tuple[str, dict[str, Any]] | None]:
    for block in blocks:
        for line in lines_of(file, block):
            yield _cdx_row(line)


def _cdx_row(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """The key and the row of a line; None for one that is damaged."""
    try:
        key, timestamp, text = line.decode().split(" ", 2)
        fields = json.loads(text)
        return key, _row({**fields, "timestamp": timestamp, "mime": fields.get("mime-detected") or fields.get("mime")})
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def _row(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Raises KeyError, ValueError and TypeError for a capture without a place."""
    row: dict[str, Any] = {
        "url": str(fields["url"]),
        "timestamp": str(fields["timestamp"]),
        "status": int(fields.get("status") or 0),
        "mime": str(fields.get("mime") or ""),
        "languages": str(fields.get("languages") or ""),
        "digest": str(fields.get("digest") or "").removeprefix("sha1:"),
        "filename": str(fields["filename"]),
        "offset": int(fields["offset"]),
        "length": int(fields["length"]),
    }
    if row["offset"] < 0 or row["length"] < 1 or ".." in str(row["filename"]).split("/"):
        raise ValueError("no place in a file")
    return row


def _table_rows(file: Readable, config: SelectCapturesConfig) -> Iterator[tuple[str, dict[str, Any]] | None]:
    import pyarrow.parquet as pq

    table = pq.ParquetFile(SeekableFile(file))
    missing = sorted(
        set(COLUMNS) - set(table.schema_arrow.names) - {"fetch_time", "content_languages", "content_digest"}
    )
    if missing:
        raise CrawlError(f"The table lacks the column {missing[0]!r}, expected those of Common Crawl's index.")
    columns = [name for name in COLUMNS if name in table.schema_arrow.names]
    groups = row_groups(table.metadata, _stored_ranges(config), config.statuses)
    for batch in table.iter_batches(batch_size=10_000, row_groups=groups, columns=columns):
        for values in batch.to_pylist():
            try:
                row = _row({COLUMNS[name]: value for name, value in values.items()} | {"timestamp": _time(values)})
                yield _key(row["url"]), row
            except (ValueError, TypeError, KeyError):
                yield None


def _stored_ranges(config: SelectCapturesConfig) -> list[tuple[str, str]]:
    """Ranges of url_surtkey that can match, () for any. It has no "www2." before a host, and no reversed numbers."""
    hosts = [*config.domains, *(urlsplit(url).hostname or "" for url in config.urls)]
    if any(host.rpartition(".")[2].isdigit() or ":" in host for host in hosts):
        return []
    return sorted({*_ranges(config), *key_ranges((), [re.sub(r"^www\d+\.", "", host.lower()) for host in hosts])})


def _time(values: Mapping[str, Any]) -> str:
    time = values.get("fetch_time")
    return "" if time is None else f"{time:%Y%m%d%H%M%S}" if hasattr(time, "strftime") else str(time)


def _key(url: str) -> str:
    """The reversed host of an address, as keys of the index begin."""
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    port = f":{parts.port}" if parts.port and (parts.scheme, parts.port) not in (("http", 80), ("https", 443)) else ""
    return ",".join(reversed(host.split("."))) + port + ")"


def row_groups(metadata: Any, ranges: Sequence[tuple[str, str]], statuses: Sequence[int]) -> list[int]:
    """Return the numbers of the row groups whose least and greatest values do not exclude a match.

    Common Crawl's tables are sorted by url_surtkey, so a query for a domain reads few of the row groups of a table.
    `metadata` is parquet's; `ranges` are those of keys, from the first to below the second, () for all. Values that
    are None, and a table without a column or its statistics, exclude nothing.
    """

    def has_key(least: str, greatest: str) -> bool:
        return any(first <= greatest and least < behind for first, behind in ranges)

    def has_status(least: int, greatest: int) -> bool:
        return any(least <= status <= greatest for status in statuses)

    tests: list[tuple[str, type, Callable[[Any, Any], bool]]] = []
    tests += [(KEY, str, has_key)] if ranges else []
    tests += [(STATUS, int, has_status)] if statuses else []
    return [
        number
        for number in range(metadata.num_row_groups)
        if all(_permits(metadata.row_group(number), *test) for test in tests)
    ]


def _permits(group: Any, name: str, kind: type, test: Callable[[Any, Any], bool]) -> bool:
    columns = (group.column(index) for index in range(group.num_columns))
    column = next((column for column in columns if column.path_in_schema == name), None)
    statistics = None if column is None else column.statistics
    if statistics is None or not statistics.has_min_max:
        return True
    if kind is int and statistics.null_count != 0:
        return True  # a missing status is 0
    least, greatest = statistics.min, statistics.max
    return not isinstance(least, kind) or not isinstance(greatest, kind) or test(least, greatest)
