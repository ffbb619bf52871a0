"""Create the steps of Wikipedia from its dumps in HTML."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.defaults.environment import curated
from marin_assets.defaults.sources.crawl import documents_of, fields_of
from marin_assets.stages.download.wiki.read_wiki_html import WIKIMEDIA, ReadWikiHtmlConfig, read_wiki_html
from marin_assets.stages.transform.html.wiki_content import WikiContent
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, PartitionName, output_path_of


@checks_arguments("source")
def default_wikipedia(
    name: str,
    source: Step | InputName | PartitionName | str,
    *,
    content: WikiContent | None = None,
    base_url: str = WIKIMEDIA,
    max_damaged_fraction: float = 0.001,
    allow_cut_files: bool = False,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "documents/<name>": the articles, as Markdown, that "raw/<name>" reads from HTML dumps.

    `source` is a dump of Wikimedia Enterprise, a folder of them, or a list of paths (".paths.gz") below `base_url`; on
    a disk, in a bucket or on a server; or a step whose output it is. `content` chooses what is kept of a page,
    WikiContent() if None. All but `base_url` enter the version.
    """
    raw_config = ReadWikiHtmlConfig(**fields_of(name, source, base_url, max_damaged_fraction, allow_cut_files))
    raw = curated(f"raw/{name}", read_wiki_html, raw_config, partitions=partitions)
    config = HtmlToMarkdownConfig(pages_path=output_path_of(raw), wiki=content or WikiContent())
    return documents_of(name, html_to_markdown, config, expectations, partitions)
