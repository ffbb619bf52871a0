"""The fields of the stages that read the files of a crawl, and the files that they name."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.documents import SUFFIX, check_format
from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.crawl.files import crawl_files
from marin_assets.stages.download.crawl.shards import check_bounds
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned

COMMON_CRAWL = "https://data.commoncrawl.org/"


@dataclass(frozen=True, kw_only=True)
class CrawlInput:
    """Files of a crawl, and how they become shards of documents."""

    input_path: str
    """A WARC or WET file, a folder of them, or a list of paths that ends with .paths or .paths.gz; on a disk, in a
    bucket or on the web. Wrap it in versioned(), unless it is the output of a step."""
    output_path: str = THIS_OUTPUT_PATH
    base_url: str = COMMON_CRAWL
    """The place below which the paths of a list are: a URL, a bucket or a folder."""
    source: str = versioned("")
    """The `source` of every document."""
    max_files: int | None = versioned(None)
    """As many of the files, chosen by the hash of their names; None reads all."""
    max_damaged_fraction: float = versioned(0.001)
    """Largest share of damaged records. Above it the stage fails."""
    allow_cut_files: bool = versioned(False)
    """Take the records of a file before its damaged end."""
    shard_bytes: int = versioned(256 * 2**20)
    """Compressed bytes of a shard. A larger gzip file is divided, unless it is of a list of more than 1,000 of the
    web, whose sizes are not requested in advance."""
    output_format: str = versioned(SUFFIX)
    """".jsonl", ".jsonl.gz", ".jsonl.zst" or ".parquet"."""
    max_connections: int = 8
    """Limit of the connections of one machine to a server. Common Crawl refuses more than about 10."""


def check_crawl_input(config: CrawlInput) -> None:
    """Raise an error for an unknown format and for numbers out of their bounds."""
    check_format(config.output_format)
    check_bounds(config, "shard_bytes", "max_connections")
    if config.max_files is not None and config.max_files < 1:
        raise CrawlError(f"max_files is {config.max_files!r}, expected 1 or more, or None. Correct it.")


def input_files(config: CrawlInput) -> tuple[list[CrawlFile], int]:
    """Return the files, and the number of ignored ones. Raises as `crawl_files`."""
    return crawl_files(
        config.input_path, config.base_url, max_files=config.max_files, max_connections=config.max_connections
    )
