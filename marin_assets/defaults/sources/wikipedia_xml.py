"""Create the steps of an XML dump of Wikipedia."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.defaults.sources.crawl import source_path
from marin_assets.stages.download.wiki.read_wiki_html import WIKIMEDIA
from marin_assets.stages.download.wiki.read_wiki_xml import ReadWikiXmlConfig, read_wiki_xml
from marin_assets.stages.transform.wikitext.content import WikitextContent
from marin_assets.stages.transform.wikitext.wikitext_to_markdown import WikitextToMarkdownConfig, wikitext_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation, expect
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, PartitionName, output_path_of, versioned


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
    raw = Step(
        name=f"raw/{name}",
        fn=read_wiki_xml,
        config=ReadWikiXmlConfig(
            input_path=source_path(source),
            base_url=base_url,
            checksums_path=checksums_path,
            source=versioned(name),
            max_damaged_fraction=versioned(max_damaged_fraction),
            allow_cut_files=versioned(allow_cut_files),
        ),
        extras=("curate",),
        resumable=True,
        partitions=partitions,
    )
    return Step(
        name=f"documents/{name}",
        fn=wikitext_to_markdown,
        config=WikitextToMarkdownConfig(pages_path=output_path_of(raw), content=content or WikitextContent()),
        extras=("curate",),
        resumable=True,
        expectations=[expect("pages_unaccounted", at_least=0, at_most=0), *expectations],
        partitions=partitions,
    )
