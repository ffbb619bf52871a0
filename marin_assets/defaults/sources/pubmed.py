"""Create the steps of PubMed and PMC."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.defaults.environment import curated
from marin_assets.defaults.sources.crawl import documents_of, fields_of
from marin_assets.stages.download.pubmed.read_pmc import PMC, ReadPmcConfig, read_pmc
from marin_assets.stages.download.pubmed.read_pubmed import NLM, ReadPubmedConfig, read_pubmed
from marin_assets.stages.transform.jats.jats_content import JatsContent
from marin_assets.stages.transform.jats.jats_to_markdown import JatsToMarkdownConfig, jats_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, PartitionName, output_path_of, versioned


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
