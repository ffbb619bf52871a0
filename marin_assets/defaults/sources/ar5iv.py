"""Create the steps of ar5iv."""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.defaults.environment import curated
from marin_assets.defaults.sources.crawl import documents_of, fields_of
from marin_assets.stages.download.ar5iv.read_ar5iv import ReadAr5ivConfig, read_ar5iv
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.stages.transform.latexml.latexml_content import LatexmlContent
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, PartitionName, output_path_of


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
