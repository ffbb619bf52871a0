"""Fetch captures of a crawl: the record of each row, by ranges of its WARC file, as pages.

In:  rows of `select_captures`, or others with "filename", "offset" and "length"; and the place of the WARC files.
Out: pages, as of `read_warc`, shard for shard under the names of the rows, in the order of files and offsets.

A row is a page or rejected for one reason: records = pages + rejected. Rows that are near one another in a file are
fetched by one request.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from marin_assets.documents import BadRow, Document, document_files, document_shards, read_rows, write_documents
from marin_assets.stages.download.crawl.crawl_input import COMMON_CRAWL, check_bounds
from marin_assets.stages.download.crawl.damage import reject, require_few_damages
from marin_assets.stages.download.crawl.files import is_web
from marin_assets.stages.download.crawl.pages import HTML_TYPES, NOTES, REASONS, page_of
from marin_assets.stages.download.warc.members import gzip_records
from marin_assets.stages.download.warc.record import DAMAGES, CrawlError, Damage
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join

KINDS = ("html",)

GAP_BYTES = 64 * 1024
"""Records that are this near are fetched by one request: that is cheaper than another request."""
MAX_RANGE_BYTES = 16 * 2**20
MAX_RECORD_BYTES = 2**30


@dataclass(frozen=True, kw_only=True)
class FetchCapturesConfig:
    input_path: str
    """Rows of captures: the output of `select_captures`."""
    output_path: str = THIS_OUTPUT_PATH
    base_url: str = COMMON_CRAWL
    """The place below which the WARC files are: a URL, a bucket or a folder."""
    source: str = versioned("")
    """The `source` of every page."""
    content_types: tuple[str, ...] = versioned(HTML_TYPES)
    """MIME types to keep, as the crawler identified them, or else by their first bytes."""
    max_page_bytes: int = versioned(10_000_000)
    """Limit of a page's body, decoded. A larger one is rejected as too_large."""
    max_damaged_fraction: float = versioned(0.001)
    """Largest share of damaged records. Above it the stage fails."""
    max_connections: int = 8
    """Limit of the connections of one machine to a server."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def fetch_captures(config: FetchCapturesConfig) -> dict[str, int | float]:
    """Fetch captures of a crawl as pages.

    Returns records (rows), pages, rejected, each rejected_<reason>, bytes (of text), bytes_fetched, requests, and the
    counts of pages that `read_warc` has. Raises CrawlError, and ShardError for a file that cannot be fetched.
    """
    _check(config)
    rows = document_files(config.input_path)
    shards = document_shards(rows, config.output_path, config)
    counts = map_shards(fetch_shard, shards, output_path=config.output_path)
    require_few_damages(counts, config)
    return {**counts, **rows.counts}


def _check(config: FetchCapturesConfig) -> None:
    check_bounds(config, "max_page_bytes", "max_connections")


def fetch_shard(shard: FileShard) -> Counts:
    """Fetch the captures of one group of files. Returns the counts of `fetch_captures`."""
    reasons = (*DAMAGES, *REASONS, "bad_row", "other_capture")
    names = ("records", "pages", "rejected", *(f"rejected_{r}" for r in reasons), "bytes", "bytes_fetched", *NOTES)
    counts = Counter(dict.fromkeys(names, 0))
    for rows, target in zip(shard.inputs, shard.outputs, strict=True):
        write_documents(target, _pages(rows.path, shard.config, counts), replace=False)
    return dict(counts)


def _pages(path: str, config: FetchCapturesConfig, counts: Counter[str]) -> Iterator[Document]:
    rows = []
    for _, row in read_rows(path):
        counts["records"] += 1
        if isinstance(row, BadRow) or not _is_capture(row):
            reject(counts, "bad_row")
        else:
            rows.append(dict(row))
    rows.sort(key=lambda row: (row["filename"], row["offset"]))
    with _fetching(config, counts) as fetch:
        for group in _ranges(rows):
            start, end = group[0]["offset"], max(row["offset"] + row["length"] for row in group)
            data = fetch(group[0]["filename"], start, end)
            counts["bytes_fetched"] += len(data)
            for row in group:
                page = _page(row, data[row["offset"] - start :][: row["length"]], config, counts)
                if isinstance(page, str):
                    reject(counts, page)
                    continue
                counts["pages"] += 1
                counts["bytes"] += len(page.text.encode())
                yield page


def _is_capture(row: Any) -> bool:
    name, offset, length = row.get("filename"), row.get("offset"), row.get("length")
    is_place = isinstance(offset, int) and isinstance(length, int) and offset >= 0 and 0 < length <= MAX_RECORD_BYTES
    return is_place and isinstance(name, str) and bool(name) and not {"..", ""} & set(name.split("/"))


def _ranges(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Groups of rows of one file that are near one another."""
    group: list[dict[str, Any]] = []
    end = 0
    for row in rows:
        behind = row["offset"] + row["length"]
        is_near = bool(group) and row["filename"] == group[0]["filename"] and row["offset"] - end <= GAP_BYTES
        if group and not (is_near and behind - group[0]["offset"] <= MAX_RANGE_BYTES):
            yield group
            group, end = [], 0
        group.append(row)
        end = max(end, behind)
    if group:
        yield group


@contextmanager
def _fetching(config: FetchCapturesConfig, counts: Counter[str]) -> Iterator[Callable[[str, int, int], bytes]]:
    """The function from a file, a start and an end to its bytes, on a server or in a store."""
    if not is_web(config.base_url):
        yield lambda name, start, end: _stored(join(config.base_url, name), start, end)
        return
    from marin_assets.stages.download.crawl.web import WebClient

    base = config.base_url.rstrip("/")
    with WebClient(config.max_connections) as client:
        try:
            yield lambda name, start, end: client.range(f"{base}/{quote(name)}", start, end)
        finally:
            counts.update(client.tally.counts())


def _stored(place: str, start: int, end: int) -> bytes:
    fs, path = filesystem_of(place)
    try:
        data: bytes = fs.cat_file(path, start=start, end=end)
    except FileNotFoundError:
        raise CrawlError(f"{place!r} does not exist, and a capture names it. Correct base_url, or copy it.") from None
    return data


class _Bytes:
    def __init__(self, content: bytes) -> None:
        self._content, self.size_bytes = content, len(content)

    def read_at(self, offset: int, size: int) -> bytes:
        return self._content[offset : offset + size]


def _page(row: dict[str, Any], data: bytes, config: FetchCapturesConfig, counts: Counter[str]) -> Document | str:
    """The page of a row, or its reason."""
    item = next(gzip_records(_Bytes(data), 0), None)
    if item is None or isinstance(item, Damage):
        return "cut_record" if item is None else item.reason
    url, digest = row.get("url"), str(row.get("digest") or "").removeprefix("sha1:")
    stated = item.headers.get("warc-payload-digest", "").removeprefix("sha1:")
    if (url and item.headers.get("warc-target-uri", "").strip("<>") != url) or (digest and stated and digest != stated):
        return "other_capture"
    page = page_of(
        dataclasses.replace(item, offset=row["offset"]),
        row["filename"],
        source=config.source,
        statuses=(),
        content_types=tuple(config.content_types),
        max_page_bytes=config.max_page_bytes,
        counts=counts,
    )
    languages = [code for code in str(row.get("languages") or "").split(",") if code]
    if isinstance(page, Document) and languages:
        return dataclasses.replace(page, metadata={**page.metadata, "languages": languages})
    return page
