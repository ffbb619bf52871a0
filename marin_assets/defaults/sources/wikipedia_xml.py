"""Create the steps of Wikipedia from its dumps in XML."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.defaults.environment import curated
from marin_assets.defaults.sources.crawl import documents_of, fields_of
from marin_assets.stages.download.wiki.read_wiki_html import WIKIMEDIA
from marin_assets.stages.download.wiki.read_wiki_xml import ReadWikiXmlConfig, read_wiki_xml
from marin_assets.stages.transform.wikitext.content import WikitextContent
from marin_assets.stages.transform.wikitext.wikitext_to_markdown import WikitextToMarkdownConfig, wikitext_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, PartitionName, output_path_of


@checks_arguments("source")
def default_wikipedia_xml(
    name: str,
    source: Step | InputName | PartitionName | str,
    *,
    content: WikitextContent | None = None,
    base_url: str = WIKIMEDIA,
    checksums_path: str | None = None,
    max_damaged_fraction: float = 0.001,
    allow_cut_files: bool = False,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "documents/<name>": the articles, as Markdown, that "raw/<name>" reads from dumps in XML.

    `source` is a dump of pages, plain or bzip2, a folder of its parts, or a list of paths below `base_url`; on a disk,
    in a bucket or on a server; or a step whose output it is. Wikitext lacks the text of templates, which is counted:
    `default_wikipedia` has it. All but `base_url` and `checksums_path` enter the version.
    """
    fields = fields_of(name, source, base_url, max_damaged_fraction, allow_cut_files)
    raw_config = ReadWikiXmlConfig(checksums_path=checksums_path, **fields)
    raw = curated(f"raw/{name}", read_wiki_xml, raw_config, partitions=partitions)
    config = WikitextToMarkdownConfig(pages_path=output_path_of(raw), content=content or WikitextContent())
    return documents_of(name, wikitext_to_markdown, config, expectations, partitions)
