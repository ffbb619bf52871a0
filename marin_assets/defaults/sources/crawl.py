"""Create the steps of a web crawl: WARC files, WET files, or captures that its index selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from marin_assets.defaults.environment import curated
from marin_assets.stages.download.crawl.crawl_input import COMMON_CRAWL
from marin_assets.stages.download.crawl.fetch_captures import FetchCapturesConfig, fetch_captures
from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.stages.download.crawl.read_wet import ReadWetConfig, read_wet
from marin_assets.stages.download.crawl.select_captures import SelectCapturesConfig, select_captures
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, PartitionName, output_path_of, versioned


@checks_arguments("source")
def default_warc(
    name: str,
    source: Step | InputName | PartitionName | str,
    *,
    base_url: str = COMMON_CRAWL,
    max_files: int | None = None,
    max_damaged_fraction: float = 0.001,
    allow_cut_files: bool = False,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "documents/<name>": the main content as Markdown of the pages that "raw/<name>" reads from WARC.

    `source` is a WARC file, a folder of them, or a list of paths (".paths.gz") below `base_url`; on a disk, in a bucket
    or on a server; or a step whose output it is. All but `base_url` enter the version.
    """
    fields = fields_of(name, source, base_url, max_damaged_fraction, allow_cut_files)
    raw = curated(
        f"raw/{name}", read_warc, ReadWarcConfig(max_files=versioned(max_files), **fields), partitions=partitions
    )
    return main_content_of(name, raw, expectations, partitions)


@checks_arguments("source")
def default_wet(
    name: str,
    source: Step | InputName | PartitionName | str,
    *,
    languages: Sequence[str] = (),
    base_url: str = COMMON_CRAWL,
    max_files: int | None = None,
    max_damaged_fraction: float = 0.001,
    allow_cut_files: bool = False,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "documents/<name>": the texts of WET files, of all languages or of some ("eng", "spa").

    The other arguments are those of `default_warc`.
    """
    fields = fields_of(name, source, base_url, max_damaged_fraction, allow_cut_files)
    config = ReadWetConfig(languages=versioned(tuple(languages)), max_files=versioned(max_files), **fields)
    return curated(f"documents/{name}", read_wet, config, expectations=expectations, partitions=partitions)


@checks_arguments()
def default_captures(
    name: str,
    index: str,
    *,
    domains: Sequence[str] = (),
    urls: Sequence[str] = (),
    languages: Sequence[str] = (),
    sample_fraction: float = 1.0,
    base_url: str = COMMON_CRAWL,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "documents/<name>": the main content, as Markdown, of pages that a query of an index selects.

    "selected/<name>" has the captures, "raw/<name>" the pages. `index` is the folder of a CDX index, or of tables of
    parquet. `domains` include their subdomains; an address in `urls` may end with "*". All but `base_url` enter the
    version.
    """
    selected = curated(
        f"selected/{name}",
        select_captures,
        SelectCapturesConfig(
            index_path=versioned(index),
            domains=versioned(tuple(domains)),
            urls=versioned(tuple(urls)),
            languages=versioned(tuple(languages)),
            sample_fraction=versioned(sample_fraction),
        ),
    )
    raw = curated(
        f"raw/{name}",
        fetch_captures,
        FetchCapturesConfig(input_path=output_path_of(selected), base_url=base_url, source=versioned(name)),
    )
    return main_content_of(name, raw, expectations, None)


def fields_of(
    name: str,
    source: Step | InputName | PartitionName | str,
    base_url: str,
    max_damaged_fraction: float,
    allow_cut_files: bool | None = None,
) -> dict[str, Any]:
    """Return the fields that stages have which read files: the path of a source, and what is accepted of its files."""
    cut = {} if allow_cut_files is None else {"allow_cut_files": versioned(allow_cut_files)}
    return {
        "input_path": source_path(source),
        "base_url": base_url,
        "source": versioned(name),
        "max_damaged_fraction": versioned(max_damaged_fraction),
        **cut,
    }


def source_path(source: Step | InputName | PartitionName | str) -> Any:
    """Return the input path of a source: a versioned path, or the output of a step."""
    if isinstance(source, Step):
        return output_path_of(source)
    return versioned(source) if isinstance(source, str) else source


def main_content_of(name: str, raw: Step, expectations: Sequence[Expectation], partitions: Partitions | None) -> Step:
    config = HtmlToMarkdownConfig(pages_path=output_path_of(raw), main_content=MainContent())
    return documents_of(name, html_to_markdown, config, expectations, partitions)


def documents_of(
    name: str,
    fn: Callable[[Any], Any],
    config: Any,
    expectations: Sequence[Expectation],
    partitions: Partitions | None,
) -> Step:
    """Return the step "documents/<name>", which makes documents of pages and accounts for each."""
    unaccounted = "pages_unaccounted"
    return curated(
        f"documents/{name}", fn, config, unaccounted=unaccounted, expectations=expectations, partitions=partitions
    )
