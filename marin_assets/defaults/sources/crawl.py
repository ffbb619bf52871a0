"""Create the steps of a web crawl: WARC files, or WET files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marin_assets.stages.download.crawl.crawl_input import COMMON_CRAWL
from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.stages.download.crawl.read_wet import ReadWetConfig, read_wet
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation, expect
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
    raw = Step(
        name=f"raw/{name}",
        fn=read_warc,
        config=ReadWarcConfig(
            input_path=source_path(source),
            base_url=base_url,
            source=versioned(name),
            max_files=versioned(max_files),
            max_damaged_fraction=versioned(max_damaged_fraction),
            allow_cut_files=versioned(allow_cut_files),
        ),
        extras=("curate",),
        resumable=True,
        partitions=partitions,
    )
    return documents_of(name, raw, expectations, partitions)


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
    config = ReadWetConfig(
        input_path=source_path(source),
        base_url=base_url,
        source=versioned(name),
        languages=versioned(tuple(languages)),
        max_files=versioned(max_files),
        max_damaged_fraction=versioned(max_damaged_fraction),
        allow_cut_files=versioned(allow_cut_files),
    )
    return Step(
        name=f"documents/{name}",
        fn=read_wet,
        config=config,
        extras=("curate",),
        resumable=True,
        expectations=expectations,
        partitions=partitions,
    )


def source_path(source: Step | InputName | PartitionName | str) -> Any:
    """Return the input path of a source: a versioned path, or the output of a step."""
    if isinstance(source, Step):
        return output_path_of(source)
    return versioned(source) if isinstance(source, str) else source


def documents_of(name: str, raw: Step, expectations: Sequence[Expectation], partitions: Partitions | None) -> Step:
    return Step(
        name=f"documents/{name}",
        fn=html_to_markdown,
        config=HtmlToMarkdownConfig(pages_path=output_path_of(raw), main_content=MainContent()),
        extras=("curate",),
        resumable=True,
        expectations=[expect("pages_unaccounted", at_least=0, at_most=0), *expectations],
        partitions=partitions,
    )
