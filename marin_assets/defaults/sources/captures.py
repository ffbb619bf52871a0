"""Create the steps of captures that the index of a web crawl selects."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.defaults.environment import curated
from marin_assets.defaults.sources.crawl import main_content_of
from marin_assets.stages.download.crawl.crawl_input import COMMON_CRAWL
from marin_assets.stages.download.crawl.fetch_captures import FetchCapturesConfig, fetch_captures
from marin_assets.stages.download.crawl.select_captures import SelectCapturesConfig, select_captures
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of, versioned


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
