"""The fields of the stages that read the files of a crawl, of dumps or of archives, and the files that they name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from marin_assets.documents import SUFFIX, check_format
from marin_assets.stages.download.crawl.crawl_file import CrawlFile
from marin_assets.stages.download.crawl.files import crawl_files
from marin_assets.stages.download.warc.record import CrawlError
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources

COMMON_CRAWL = "https://data.commoncrawl.org/"


@dataclass(frozen=True, kw_only=True)
class FilesInput:
    """Files of a store or of a server, and how they become shards of documents."""

    input_path: str
    """A file, a folder of them, or a list of paths that ends with .paths or .paths.gz; on a disk, in a bucket or on the
    web. Wrap it in versioned(), unless it is the output of a step."""
    output_path: str = THIS_OUTPUT_PATH
    base_url: str = ""
    """The place below which the paths of a list are: a URL, a bucket or a folder."""
    source: str = versioned("")
    """The `source` of every document."""
    max_damaged_fraction: float = versioned(0.001)
    """Largest share of damaged records. Above it the stage fails."""
    shard_bytes: int = versioned(256 * 2**20)
    """Bytes of text of a shard."""
    max_connections: int = 2
    """Limit of the connections of one machine to a server. Wikimedia refuses more than about 3."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, lambda config: config.check(), name)

    def check(self) -> None:
        """Raise an error for numbers out of their bounds."""
        limits = [field.name for field in fields(self) if field.name.endswith("_bytes")]
        check_bounds(self, *limits, "max_connections")

    def files(self, **chosen: Any) -> tuple[list[CrawlFile], int]:
        """Return the files, and the number of ignored ones. `chosen` are arguments of `crawl_files`, whose errors it
        raises."""
        return crawl_files(self.input_path, self.base_url, max_connections=self.max_connections, **chosen)


@dataclass(frozen=True, kw_only=True)
class DumpInput(FilesInput):
    """Files that are read from the start to the end."""

    allow_cut_files: bool = versioned(False)
    """Take what is before the damaged end of a file."""


@dataclass(frozen=True, kw_only=True)
class CrawlInput(DumpInput):
    """Files of a crawl."""

    base_url: str = COMMON_CRAWL
    """The place below which the paths of a list are."""
    max_files: int | None = versioned(None)
    """As many of the files, chosen by the hash of their names; None reads all."""
    shard_bytes: int = versioned(256 * 2**20)
    """Compressed bytes of a shard. A larger gzip file is divided, unless it is of a list of more than 1,000 of the
    web, whose sizes are not requested in advance."""
    output_format: str = versioned(SUFFIX)
    """".jsonl", ".jsonl.gz", ".jsonl.zst" or ".parquet"."""
    max_connections: int = 8
    """Limit of the connections of one machine to a server. Common Crawl refuses more than about 10."""

    def check(self) -> None:
        """Raise an error for an unknown format and for numbers out of their bounds."""
        super().check()
        check_format(self.output_format)
        if self.max_files is not None and self.max_files < 1:
            raise CrawlError(f"max_files is {self.max_files!r}, expected 1 or more, or None. Correct it.")


def check_bounds(config: Any, *counts: str) -> None:
    """Raise CrawlError unless each field of `counts` is 1 or more, and `max_damaged_fraction` a fraction."""
    for name in counts:
        if getattr(config, name) < 1:
            raise CrawlError(f"{name} is {getattr(config, name)!r}, expected 1 or more. Correct it.")
    if not 0 <= config.max_damaged_fraction <= 1:
        raise CrawlError(f"max_damaged_fraction is {config.max_damaged_fraction!r}, expected a fraction from 0 to 1.")
