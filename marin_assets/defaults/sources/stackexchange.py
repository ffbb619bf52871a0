"""Create the steps of Stack Exchange."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.defaults.environment import curated
from marin_assets.defaults.sources.crawl import documents_of, fields_of
from marin_assets.stages.download.stackexchange.read_stackexchange import (
    ARCHIVE,
    ReadStackexchangeConfig,
    read_stackexchange,
)
from marin_assets.stages.transform.html.thread_content import ThreadContent
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, PartitionName, output_path_of, versioned


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
