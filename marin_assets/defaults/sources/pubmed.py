"""Create the steps of PubMed and PMC."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.defaults.sources.crawl import source_path
from marin_assets.stages.download.pubmed.read_pmc import PMC, ReadPmcConfig, read_pmc
from marin_assets.stages.download.pubmed.read_pubmed import NLM, ReadPubmedConfig, read_pubmed
from marin_assets.stages.transform.jats.jats_content import JatsContent
from marin_assets.stages.transform.jats.jats_to_markdown import JatsToMarkdownConfig, jats_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation, expect
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
    return Step(
        name=f"documents/{name}",
        fn=read_pubmed,
        config=ReadPubmedConfig(
            input_path=source_path(source),
            base_url=base_url,
            source=versioned(name),
            labels=versioned(labels),
            max_damaged_fraction=versioned(max_damaged_fraction),
            allow_cut_files=versioned(allow_cut_files),
        ),
        extras=("curate",),
        resumable=True,
        expectations=list(expectations),
        partitions=partitions,
    )


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
    raw = Step(
        name=f"raw/{name}",
        fn=read_pmc,
        config=ReadPmcConfig(
            input_path=source_path(source),
            base_url=base_url,
            max_damaged_fraction=versioned(max_damaged_fraction),
            allow_cut_files=versioned(allow_cut_files),
        ),
        extras=("curate",),
        resumable=True,
        partitions=partitions,
    )
    return Step(
        name=f"documents/{name}",
        fn=jats_to_markdown,
        config=JatsToMarkdownConfig(pages_path=output_path_of(raw), content=content or JatsContent()),
        extras=("curate",),
        resumable=True,
        expectations=[expect("pages_unaccounted", at_least=0, at_most=0), *expectations],
        partitions=partitions,
    )
