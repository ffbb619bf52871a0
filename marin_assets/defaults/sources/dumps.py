"""Create the steps of dumps and archives: ar5iv, PubMed and PMC, Stack Exchange, Wikipedia in HTML and in XML."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.defaults.environment import curated
from marin_assets.defaults.sources.crawl import documents_of, fields_of
from marin_assets.stages.download.ar5iv.read_ar5iv import ReadAr5ivConfig, read_ar5iv
from marin_assets.stages.download.pubmed.read_pmc import PMC, ReadPmcConfig, read_pmc
from marin_assets.stages.download.pubmed.read_pubmed import NLM, ReadPubmedConfig, read_pubmed
from marin_assets.stages.download.stackexchange.read_stackexchange import (
    ARCHIVE,
    ReadStackexchangeConfig,
    read_stackexchange,
)
from marin_assets.stages.download.wiki.read_wiki_html import WIKIMEDIA, ReadWikiHtmlConfig, read_wiki_html
from marin_assets.stages.download.wiki.read_wiki_xml import ReadWikiXmlConfig, read_wiki_xml
from marin_assets.stages.transform.html.thread_content import ThreadContent
from marin_assets.stages.transform.html.wiki_content import WikiContent
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.stages.transform.jats.jats_content import JatsContent
from marin_assets.stages.transform.jats.jats_to_markdown import JatsToMarkdownConfig, jats_to_markdown
from marin_assets.stages.transform.latexml.latexml_content import LatexmlContent
from marin_assets.stages.transform.wikitext.content import WikitextContent
from marin_assets.stages.transform.wikitext.wikitext_to_markdown import WikitextToMarkdownConfig, wikitext_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, PartitionName, output_path_of, versioned


@checks_arguments("source")
def default_ar5iv(
    name: str,
    source: Step | InputName | PartitionName | str,
    *,
    content: LatexmlContent | None = None,
    base_url: str = "",
    max_damaged_fraction: float = 0.001,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "documents/<name>": the papers, as Markdown, that "raw/<name>" reads from ar5iv's zip archives.

    `source` is an archive, a folder of them, or a list of paths (".paths.gz") below `base_url`; on a disk, in a bucket
    or on a server; or a step whose output it is. `content` chooses what is kept of a paper, LatexmlContent() if None.
    All but `base_url` enter the version.
    """
    raw_config = ReadAr5ivConfig(**fields_of(name, source, base_url, max_damaged_fraction))
    raw = curated(f"raw/{name}", read_ar5iv, raw_config, partitions=partitions)
    config = HtmlToMarkdownConfig(pages_path=output_path_of(raw), latexml=content or LatexmlContent())
    return documents_of(name, html_to_markdown, config, expectations, partitions)


@checks_arguments("source")
def default_pubmed(
    name: str,
    source: Step | InputName | PartitionName | str,
    *,
    labels: bool = True,
    base_url: str = NLM,
    max_damaged_fraction: float = 0.001,
    allow_cut_files: bool = False,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "documents/<name>": title and abstract of PubMed's citations, as Markdown.

    `source` is a file of PubMed, a folder of baseline and update files, or a list of paths (".paths") below `base_url`;
    on a disk, in a bucket or on a server; or a step whose output it is. `labels`: labels of an abstract's parts, such
    as METHODS, become headings. All but `base_url` enter the version.
    """
    fields = fields_of(name, source, base_url, max_damaged_fraction, allow_cut_files)
    config = ReadPubmedConfig(labels=versioned(labels), **fields)
    return curated(f"documents/{name}", read_pubmed, config, expectations=expectations, partitions=partitions)


@checks_arguments("source")
def default_pmc(
    name: str,
    source: Step | InputName | PartitionName | str,
    *,
    content: JatsContent | None = None,
    base_url: str = PMC,
    max_damaged_fraction: float = 0.001,
    allow_cut_files: bool = False,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "documents/<name>": the articles, as Markdown, that "raw/<name>" reads from PMC's archives.

    `source` is an archive of `oa_bulk`, a folder of them, or a list of paths (".paths") below `base_url`; on a disk, in
    a bucket or on a server; or a step whose output it is. The `source` of a document is the subset of its archive, such
    as "oa_comm". `content` chooses what is kept of an article, JatsContent() if None. All but `base_url` enter the
    version.
    """
    fields = fields_of("", source, base_url, max_damaged_fraction, allow_cut_files)
    raw = curated(f"raw/{name}", read_pmc, ReadPmcConfig(**fields), partitions=partitions)
    config = JatsToMarkdownConfig(pages_path=output_path_of(raw), content=content or JatsContent())
    return documents_of(name, jats_to_markdown, config, expectations, partitions)


@checks_arguments("source")
def default_stackexchange(
    name: str,
    source: Step | InputName | PartitionName | str,
    *,
    content: ThreadContent | None = None,
    site: str = "",
    min_question_score: int | None = 10,
    min_answer_score: int | None = None,
    min_answers: int = 0,
    max_answers: int | None = None,
    order: str = "score",
    max_characters: int | None = None,
    base_url: str = ARCHIVE,
    max_damaged_fraction: float = 0.001,
    allow_cut_files: bool = False,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "documents/<name>": the threads, as Markdown, that "raw/<name>" reads from dumps.

    `source` is a dump of a site, a folder of them, or a list of paths (".paths.gz") below `base_url`; on a disk, in a
    bucket or on a server; or a step whose output it is. `content` has the templates of a text, ThreadContent() if None,
    which are Marin's. A thread is one document, unless `max_characters` divides it. All but `base_url` enter the
    version.
    """
    raw_config = ReadStackexchangeConfig(
        **fields_of(name, source, base_url, max_damaged_fraction, allow_cut_files),
        site=versioned(site),
        min_question_score=versioned(min_question_score),
        min_answer_score=versioned(min_answer_score),
        min_answers=versioned(min_answers),
        max_answers=versioned(max_answers),
        order=versioned(order),
    )
    raw = curated(f"raw/{name}", read_stackexchange, raw_config, partitions=partitions)
    config = HtmlToMarkdownConfig(
        pages_path=output_path_of(raw), max_characters=versioned(max_characters), thread=content or ThreadContent()
    )
    return documents_of(name, html_to_markdown, config, expectations, partitions)


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
